#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cortado/device/host_view.h"
#include "cortado/device/memory.h"
#include "cortado/device/runtime.h"
#include "cortado/exec/parameters.h"
#include "cortado/program/program.h"

namespace cortado {

// Stands between the Executor and a device whose memory the host cannot touch. Communication steps use a host
// mirror of the arena with equal offsets, and host copies of parameters and gradients. What a step reads is
// copied out before it starts, what it writes is copied in once it has ended, in a queue that goes on beside
// the kernels. Batches are copied in once they are loaded.
class Staging {
 public:
  // `entries`: of the network's parameters in the store. All must outlive it.
  Staging(const Program& program, const ParameterStore& parameters, const ParameterEntries& entries,
          const device::Memory& arena);

  // The host's memory for what lies in the arena, and for what a step does to its parameters' gradients or
  // values.
  std::byte* host(const View& view) const;
  float* host_parameters(StepIndex step) const;
  // Device memory of a buffer of kind batch.
  float* batch(BufferIndex buffer) const;

  // The communication lane calls these. begin_copy_out() begins to copy what the step reads, once the compute
  // steps that it waits for are done. next_out() returns the next step, in the order of begin_copy_out(),
  // whose copy has ended; nowhere: none yet. begin_copy_in() begins to copy what the step has written, or the
  // batch that it has loaded.
  void begin_copy_out(StepIndex step);
  StepIndex next_out();
  bool is_out(StepIndex step) const;
  void begin_copy_in(StepIndex step, const IndexedVector<BufferIndex, const float*>& batches);

  // The compute lane calls these. Kernels launched after wait_for() see what the messages that `step` waits
  // for have put in; after wait_for_messages(), what all messages have put in, the carried ones only with
  // `carried`.
  void wait_for(StepIndex step);
  void wait_for_messages(bool carried);
  void computed(StepIndex step);  // all of it is launched
  const std::byte* values(const View& view);

  void restart();  // forgets steps that have not started: the lane was abandoned

 private:
  struct Copy {
    std::byte* device = nullptr;
    std::byte* host = nullptr;
    Bytes size;
  };
  struct Message {
    std::vector<Copy> reads, writes;
    device::Memory parameters;               // of the host
    std::unique_ptr<device::Event> out, in;  // null: no step of the communication lane
  };
  Copy copy_of(const View& view) const;
  void plan_exchange(const steps::Exchange& exchange, Message& message) const;
  void plan_parameters(const Step& step, Message& message) const;

  const Program& program_;
  const ParameterStore& parameters_;
  const ParameterEntries& entries_;
  const device::Memory& arena_;
  device::DeviceRuntime& device_;
  device::Memory mirror_;                          // of the host
  std::map<BufferIndex, device::Memory> batches_;  // of the device
  IndexedVector<StepIndex, Message> messages_;
  IndexedVector<StepIndex, std::unique_ptr<device::Event>> computed_;  // null: no message waits for it
  std::deque<StepIndex> going_out_;
  std::map<BufferIndex, device::HostView> values_;
  std::vector<std::shared_ptr<void>> pinned_;  // memory of the host above
  std::unique_ptr<device::Queue> copies_;
};

}  // namespace cortado
