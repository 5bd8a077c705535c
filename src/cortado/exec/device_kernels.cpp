#include "cortado/exec/device_kernels.h"

namespace cortado {

KernelChoice kernels_on(const device::DeviceRuntime& device, const std::string& kernels, bool mixed) {
  const bool gpu = device.runs_gpu_work();
  return {.kernels = gpu && kernels.empty() ? gpu_kernels : kernels,
          .mixed_devices = mixed,
          .no_other = gpu && !device.runs_host_functions()};
}

}  // namespace cortado
