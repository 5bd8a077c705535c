#include "cortado/exec/device_kernels.h"

namespace cortado {

KernelChoice kernels_on(const device::DeviceRuntime& device, const std::string& kernels, bool mixed) {
  const bool gpu = device.runs_gpu_work(), no_other = gpu && !device.runs_host_functions();
  KernelChoice choice{.kernels = kernels, .mixed_devices = mixed, .no_other = no_other};
  // Libraries' kernels run on GPUs alone.
  if (gpu && kernels.empty()) choice.kernels = no_other ? gpu_list : gpu_kernels;
  if (gpu && kernels == fast_math) choice.kernels = no_other ? gpu_fast_math : gpu_kernels;
  return choice;
}

}  // namespace cortado
