#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cortado/device/host_view.h"
#include "cortado/device/memory.h"
#include "cortado/device/runtime.h"
#include "cortado/exec/bound_exchange.h"
#include "cortado/exec/parameters.h"
#include "cortado/program/program.h"

namespace cortado {

// Stands between the Executor and a device whose memory the host cannot touch. What a communication step
// sends by the host is copied out before it starts, and what it receives is copied in once it has ended: to
// and from a host mirror of the arena with equal offsets, or host copies of parameters and gradients.
// Exchanges are packed and unpacked on the device. All this goes on in a queue beside the kernels; what
// travels by links, in one more. Batches are copied in once they are loaded, by way of pinned memory, where
// they may wait before.
class Staging {
 public:
  // `entries`: of the network's parameters in the store. All must outlive it.
  Staging(const Program& program, const ParameterStore& parameters, const ParameterEntries& entries,
          const device::Memory& arena);

  // Each exchange, and each step whose transmission is by links, is bound before the first iteration. What is
  // bound must outlive its last step.
  void bind(StepIndex step, BoundExchange& exchange, bool by_links);
  void bind_on_host(StepIndex step);  // an exchange of the host's in the mirror
  void bind(StepIndex step, Transmission& by_links);
  device::Queue& queue_of_messages(bool by_links) { return by_links ? *links_ : *copies_; }

  // The host's memory for what lies in the arena, and for what a step does to its parameters' gradients or
  // values.
  std::byte* host(const View& view, int64_t offset) const;  // `offset`: of its buffer, in the arena
  std::byte* host(std::byte* in_arena) const;               // as launched functions reach it
  float* host_parameters(StepIndex step) const;
  // Device memory of a buffer of kind batch.
  float* batch(BufferIndex buffer) const;

  // The communication lane calls these. begin() begins a step, once the compute steps that it waits for are
  // done: what is by links goes on to its end by itself, and is_in() says when. Of others it begins to copy
  // out what they send. next_out() returns the next of those, in the order of begin(), whose copy has ended;
  // nowhere: none yet. begin_copy_in() begins to copy what a step has received, or the batch that it has
  // loaded; `near`: that batch is in pinned memory already. bring_near() brings it there, one pointer per
  // top, after the step's last copy has ended.
  void begin(StepIndex step);
  bool by_links(StepIndex step) const { return messages_[step].queue == links_.get(); }
  StepIndex next_out();
  bool is_out(StepIndex step) const;
  void begin_copy_in(StepIndex step, const IndexedVector<BufferIndex, const float*>& batches, bool near);
  void bring_near(StepIndex step, const std::vector<const float*>& tensors);
  bool is_in(StepIndex step) const { return messages_[step].in->reached(); }

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
    device::Queue* queue = nullptr;
    std::vector<Copy> reads, writes;
    BoundExchange* exchange = nullptr;  // done by the device
    bool some_by_links = false;         // some of its messages are by links
    Transmission* by_links = nullptr;
    device::Memory parameters;               // of the host
    std::unique_ptr<device::Event> out, in;  // null: no step of the communication lane
  };
  struct Batch {
    device::Memory memory, pinned;  // of the device, of the host
  };
  Copy copy_of(const View& view, StepIndex step) const;
  Copy copy_of(const BoundExchange::Run& run) const;
  void plan_parameters(const Step& step, Message& message) const;
  void wait_before(const Step& step, device::Queue& queue) const;
  void copy_batch(const Batch& batch, const float* values);
  const Work& work_of(StepIndex step) const { return program_.works[program_.steps[step].work()]; }

  const Program& program_;
  const ParameterStore& parameters_;
  const ParameterEntries& entries_;
  const device::Memory& arena_;
  device::DeviceRuntime& device_;
  device::Memory mirror_;  // of the host
  std::map<BufferIndex, Batch> batches_;
  IndexedVector<StepIndex, Message> messages_;
  IndexedVector<StepIndex, std::unique_ptr<device::Event>> computed_;  // null: no message waits for it
  std::deque<StepIndex> going_out_;
  std::map<BufferIndex, device::HostView> values_;
  std::vector<std::shared_ptr<void>> pinned_;  // memory of the host above
  std::unique_ptr<device::Queue> copies_, links_;
};

}  // namespace cortado
