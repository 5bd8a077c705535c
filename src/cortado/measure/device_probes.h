#pragma once

#include <string>

#include "cortado/base/units.h"
#include "cortado/device/runtime.h"

namespace cortado {

// Bytes per second that the compute threads together move by a triad, a = b + s * c over arrays far beyond
// the caches, counting three floats an element. The best of the sweeps that `duration` allows.
Bandwidth measure_memory_bandwidth(Seconds duration);

// What starting the compute threads on work and waiting for them takes: the median of many.
Seconds measure_task_overhead();

// Words for a device that is not the host, for machine files and caches: "emulated", "NVIDIA H100"; empty:
// the host.
std::string device_text(const device::DeviceRuntime& device);

// The same figures of any device, its work started by this thread. The rate is that of the forward pass of a
// convolution, large enough to fill the device, by its own kernels: what ranks on unequal devices compute is
// compared by it.
struct DeviceRates {
  double flops = 0;  // per second
  Bandwidth memory_bandwidth;
  Seconds task_overhead;
};
double measure_device_rate(device::DeviceRuntime& device);
DeviceRates measure_device(device::DeviceRuntime& device);

}  // namespace cortado
