#pragma once

#include "cortado/net/network.h"
#include "cortado/sim/simulated_job.h"
#include "cortado/tune/tune_strategy.h"

namespace cortado {

// Refines a strategy by simulations of the job on a machine. Takes no strategy under which a rank would hold
// more than its device has; only the start may. `history`: as of held_memory().
TunedStrategy tune_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                      const TuneOptions& options, int history);

}  // namespace cortado
