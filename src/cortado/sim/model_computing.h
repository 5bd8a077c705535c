#pragma once

#include "cortado/compile/compile.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// Makes the steps of a rank's program wait as long as they would compute by a machine's figures
// (Compiled::modelled).
void model_computing(Compiled& compiled, const DeviceGraph& machine);

}  // namespace cortado
