#include "cortado/device/open_device.h"

#include "cortado/device/cuda.h"
#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/device/host/host_runtime.h"

namespace cortado::device {

std::shared_ptr<DeviceRuntime> open_device(const DeviceName& name, const DeviceOptions& options) {
  switch (name.kind) {
    case DeviceName::Kind::gpu:
      return make_cuda(name.number, options);
    case DeviceName::Kind::emulated:
      return make_emulated(options);
    case DeviceName::Kind::cpu:
      break;
  }
  return {&host(), [](DeviceRuntime*) {}};
}

}  // namespace cortado::device
