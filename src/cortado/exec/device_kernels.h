#pragma once

#include <string>

#include "cortado/compile/kernel_facts.h"
#include "cortado/device/runtime.h"

namespace cortado {

// Which kernels run the layers of a rank on `device`. `kernels`: those that are asked for; "": the device's
// usual ones. `mixed`: as KernelChoice::mixed_devices.
KernelChoice kernels_on(const device::DeviceRuntime& device, const std::string& kernels, bool mixed);

}  // namespace cortado
