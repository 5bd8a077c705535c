#pragma once

#include "cortado/cost/cost_model.h"
#include "cortado/machine/device_graph.h"
#include "cortado/net/network.h"
#include "cortado/tune/tune_strategy.h"

namespace cortado {

// Refines a strategy by simulations of the job on a machine. Strategies under which a rank would hold more
// than its device has are not taken, but for the start. Where `costs` measures, all ranks call it.
TunedStrategy tune_on(const DeviceGraph& machine, CostModel& costs, const Network& network,
                      const Strategy& start, const TuneOptions& options);

}  // namespace cortado
