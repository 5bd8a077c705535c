#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cortado/base/units.h"
#include "cortado/device/queue.h"

namespace cortado::device {

// Where one rank computes: its memory (device/memory.h), and queues of work on it. A folder of this room
// holds one kind of device. Only functions launched on a device's queues, and the queues' copies, touch its
// memory; where host_accessible(), everybody may, once no work in a queue still does.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  DeviceRuntime(const DeviceRuntime&) = delete;
  DeviceRuntime& operator=(const DeviceRuntime&) = delete;

  bool host_accessible() const { return host_accessible_; }
  // The queue of the kernels. Nets that share parameters share it, so their work stays in order.
  virtual Queue& queue() = 0;
  virtual std::unique_ptr<Queue> make_queue() = 0;  // one more; must not outlive the device
  virtual std::unique_ptr<Event> make_event() = 0;

  // The address by which launched functions reach device memory at `address`. Others stay as they are.
  template <typename T>
  T* for_kernels(T* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return at >= begin_ && at < end_ ? reinterpret_cast<T*>(at + shift_) : address;
  }

 protected:
  explicit DeviceRuntime(bool host_accessible) : host_accessible_(host_accessible) {}
  // Addresses within [begin, end) are `shift` further on for launched functions.
  void shift_for_kernels(uintptr_t begin, uintptr_t end, uintptr_t shift) {
    begin_ = begin, end_ = end, shift_ = shift;
  }

 private:
  friend class Memory;
  // Zeroed, on a 64-byte boundary or a larger one. Throws UserError where there is not that much.
  virtual std::byte* allocate(Bytes size) = 0;
  virtual void free(std::byte* block, Bytes size) = 0;

  const bool host_accessible_;
  uintptr_t begin_ = 0, end_ = 0, shift_ = 0;
};

}  // namespace cortado::device
