#pragma once

#include "cortado/device/runtime.h"

namespace cortado::device {

// The processor's own memory; its queues run everything at once on the calling thread. One for all ranks of
// the process.
DeviceRuntime& host();

}  // namespace cortado::device
