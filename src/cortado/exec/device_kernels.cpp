#include "cortado/exec/device_kernels.h"

namespace cortado {

KernelChoice kernels_on(const device::DeviceRuntime& device, const std::string& kernels, bool mixed) {
  const bool gpu = device.runs_gpu_work(), no_other = gpu && !device.runs_host_functions();
  KernelChoice choice{.kernels = kernels, .mixed_devices = mixed, .no_other = no_other};
  // Libraries' kernels run on GPUs alone.
  if (gpu && kernels.empty()) choice.kernels = no_other ? gpu_list : gpu_kernels;
  if (no_other && kernels == fast_math) choice.kernels = gpu_fast_math;
  return choice;
}

}  // namespace cortado
