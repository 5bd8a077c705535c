#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cortado/device/runtime.h"

namespace cortado::device {

// Floats in device memory as the host may read them, once all work of the device's queue is done: where they
// lie, or a copy.
class HostView {
 public:
  HostView(DeviceRuntime& device, const float* memory, int64_t count);
  HostView(HostView&&) = default;  // a vector keeps its elements where they are
  HostView& operator=(HostView&&) = default;
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;

  std::span<const float> values() const { return values_; }

 private:
  std::vector<float> copy_;
  std::span<const float> values_;
};

// Copies `values` into device memory, once all work of the device's queue is done.
void write(DeviceRuntime& device, float* memory, std::span<const float> values);

}  // namespace cortado::device
