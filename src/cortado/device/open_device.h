#pragma once

#include <memory>

#include "cortado/device/device_name.h"
#include "cortado/device/runtime.h"

namespace cortado::device {

// Opens a device: the host's is one for all, of others each call makes one. Throws UserError where this
// host does not have it. A GPU's number must be said.
std::shared_ptr<DeviceRuntime> open_device(const DeviceName& name, const DeviceOptions& options = {});

}  // namespace cortado::device
