#pragma once

#include <cstddef>

#include "cortado/base/units.h"
#include "cortado/device/host/host_runtime.h"
#include "cortado/device/runtime.h"

namespace cortado::device {

// A zeroed block of a device's memory, on a 64-byte boundary or a larger one. Free it after the work that
// uses it is done.
class Memory {
 public:
  Memory() = default;
  // Throws UserError when the device does not have that much. The device must outlive the memory.
  explicit Memory(Bytes size, DeviceRuntime& device = host());
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  float* floats(int64_t byte_offset = 0) const { return reinterpret_cast<float*>(data_ + byte_offset); }
  Bytes size() const { return size_; }

 private:
  DeviceRuntime* device_ = nullptr;
  std::byte* data_ = nullptr;
  Bytes size_;
};

}  // namespace cortado::device
