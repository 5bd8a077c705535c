#pragma once

#include "cortado/device/device.h"

namespace cortado::device {

// The processor's own memory; its queues run everything at once on the calling thread. One for all ranks of
// the process.
Device& host();

}  // namespace cortado::device
