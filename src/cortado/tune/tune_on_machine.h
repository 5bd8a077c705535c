#pragma once

#include "cortado/net/network.h"
#include "cortado/sim/simulated_job.h"
#include "cortado/tune/tune_strategy.h"

namespace cortado {

// Refines a strategy by simulations of the job on a machine. Strategies under which a rank would hold more
// than its device has are not taken, but for the start. `history`: as of held_memory().
TunedStrategy tune_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                      const TuneOptions& options, int history);

}  // namespace cortado
