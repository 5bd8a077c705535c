#include "cortado/device/host_view.h"

#include "cortado/base/element_type.h"

namespace cortado::device {

HostView::HostView(DeviceRuntime& device, const float* memory, int64_t count) {
  const auto size = static_cast<size_t>(count);
  if (size > 0 && !device.host_accessible()) {
    copy_.resize(size);
    device.queue().copy_out(reinterpret_cast<std::byte*>(copy_.data()),
                            reinterpret_cast<const std::byte*>(memory), bytes_of(count, ElementType::f32));
    memory = copy_.data();
  }
  device.queue().finish();
  values_ = {memory, size};
}

void write(DeviceRuntime& device, float* memory, std::span<const float> values) {
  device.queue().copy_in(reinterpret_cast<std::byte*>(memory),
                         reinterpret_cast<const std::byte*>(values.data()),
                         {static_cast<int64_t>(values.size_bytes())});
  device.queue().finish();
}

}  // namespace cortado::device
