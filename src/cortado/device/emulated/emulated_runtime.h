#pragma once

#include <memory>

#include "cortado/device/runtime.h"

namespace cortado::device {

// An accelerator for tests, played by threads of the processor. The host faults when it touches its memory. A
// queue begins work only once somebody waits for it, so a forgotten wait finds old values. Memory that is
// freed faults when work in a queue still uses it. Kernels of the host and those of a GPU run on it.
std::unique_ptr<DeviceRuntime> make_emulated(const DeviceOptions& options = {});

}  // namespace cortado::device
