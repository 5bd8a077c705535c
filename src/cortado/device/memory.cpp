#include "cortado/device/memory.h"

#include <utility>

namespace cortado::device {

Memory::Memory(Bytes size, DeviceRuntime& device) : device_(&device), size_(size) {
  if (size.count == 0) return;
  data_ = device.allocate(size);
  device.take(size);
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  device_->free(data_, size_);
  device_->take({-size_.count});
}

Memory::Memory(Memory&& other) noexcept { *this = std::move(other); }

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace cortado::device
