#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cortado/base/units.h"
#include "cortado/device/queue.h"

namespace cortado::device {

// Who touches a device's memory: launched functions themselves, as the host's kernels do; the work that they
// start on a GPU's stream (Queue::stream()), as kernels/gpu do; or, on a device for tests, either.
enum class Launches { host_functions, gpu_work, either };

// What carries bytes between the memories of devices, without the host. Ranks whose devices have the same
// one, and are of different units, may use it (comm/links.h).
enum class Link { none, emulated, nccl };

// What of a device is used, where it has it.
struct DeviceOptions {
  bool graphs = true;
  bool links = false;  // of emulated devices
};

// Where one rank computes: its memory (device/memory.h), and queues of work on it. A folder of this room
// holds one kind of device. Only functions launched on a device's queues, and the queues' copies, touch its
// memory; where host_accessible(), everybody may, once no work in a queue still does.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  DeviceRuntime(const DeviceRuntime&) = delete;
  DeviceRuntime& operator=(const DeviceRuntime&) = delete;

  bool host_accessible() const { return host_accessible_; }
  bool runs_host_functions() const { return launches_ != Launches::gpu_work; }
  bool runs_gpu_work() const { return launches_ != Launches::host_functions; }
  virtual bool captures() const { return false; }  // its queues make graphs, and may
  virtual Link link() const { return Link::none; }
  virtual std::string unit() const { return ""; }  // names the hardware, among all hosts; with a link
  // The queue of the kernels. Nets that share parameters share it, so their work stays in order.
  virtual Queue& queue() = 0;
  virtual std::unique_ptr<Queue> make_queue() = 0;  // one more; must not outlive the device
  virtual std::unique_ptr<Event> make_event(bool timed = false) = 0;

  // Keeps pages of the host's memory in their places, while what it returns lives, so that copies are fast.
  virtual std::shared_ptr<void> pin(std::byte*, Bytes) { return nullptr; }

  // The most that its Memory has taken at a time.
  Bytes most_taken() const { return {most_taken_}; }

  // Whatever those who communicate with its memory keep as long as the device is there (comm/links.h).
  std::shared_ptr<void> kept_by_links;

  // The address by which launched functions reach device memory at `address`. Others stay as they are.
  template <typename T>
  T* for_kernels(T* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return at >= begin_ && at < end_ ? reinterpret_cast<T*>(at + shift_) : address;
  }

 protected:
  DeviceRuntime(bool host_accessible, Launches launches)
      : host_accessible_(host_accessible), launches_(launches) {}
  // Addresses within [begin, end) are `shift` further on for launched functions.
  void shift_for_kernels(uintptr_t begin, uintptr_t end, uintptr_t shift) {
    begin_ = begin, end_ = end, shift_ = shift;
  }

 private:
  friend class Memory;
  // Zeroed, on a 64-byte boundary or a larger one. Throws UserError where there is not that much.
  virtual std::byte* allocate(Bytes size) = 0;
  virtual void free(std::byte* block, Bytes size) = 0;

  // Memory takes so much; negative: it gives it back.
  void take(Bytes size) {
    const int64_t now = taken_ += size.count;
    int64_t most = most_taken_;
    while (most < now && !most_taken_.compare_exchange_weak(most, now)) continue;
  }

  std::atomic<int64_t> taken_ = 0, most_taken_ = 0;
  const bool host_accessible_;
  const Launches launches_;
  uintptr_t begin_ = 0, end_ = 0, shift_ = 0;
};

}  // namespace cortado::device
