#pragma once

#include <string>

#include "cortado/machine/device_graph.h"

namespace cortado {

// Tables of a machine: its devices, the links of each kind, and what a measurement has taught of messages and
// sums.
std::string machine_report(const DeviceGraph& machine);

}  // namespace cortado
