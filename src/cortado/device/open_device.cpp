#include "cortado/device/open_device.h"

#include "cortado/device/cuda.h"
#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/device/host/host_runtime.h"

namespace cortado::device {

std::shared_ptr<DeviceRuntime> open_device(const DeviceName& name) {
  switch (name.kind) {
    case DeviceName::Kind::gpu:
      return make_cuda(name.number);
    case DeviceName::Kind::emulated:
      return make_emulated();
    case DeviceName::Kind::cpu:
      break;
  }
  return {&host(), [](DeviceRuntime*) {}};
}

}  // namespace cortado::device
