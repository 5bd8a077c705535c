#pragma once

#include <optional>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/sim/simulated_job.h"
#include "cortado/tune/place_branches.h"
#include "cortado/tune/search_cuts.h"
#include "cortado/tune/tune_strategy.h"

namespace cortado {

// Refines a strategy by simulations of the job on a machine. Takes no strategy under which a rank would hold
// more than its device has; only the start may. `history`: as of held_memory().
TunedStrategy tune_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                      const TuneOptions& options, int history);

// Puts branches side by side where simulations of the job on a machine say that this takes less; memory as
// of tune_on(). The more ranks and layers there are, the fewer strategies are simulated, so that a search
// takes about as long for all: on many ranks none. `effort`: of a full search, up to 1.
inline constexpr double effort_of_auto = 0.25;
PlacedStrategy place_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                        int history, double effort = 1, Bytes limit = {});

// What simulations of the job on a machine say of strategies; memory as of tune_on(), and no more than
// `limit`, where that is not 0; so also of the functions around.
StrategyCosts strategy_costs(const SimulatedMachine& machine, const Network& network, int history,
                             Bytes limit = {});

// Searches for the cuts of least simulated time; memory and the number of simulations as of place_on().
// Nothing where the ranks and layers are too many to simulate enough.
std::optional<FoundCuts> search_cuts_on(const SimulatedMachine& machine, const Network& network,
                                        const Strategy& start, const std::vector<CutChoice>& choices,
                                        int history, Bytes limit = {});

}  // namespace cortado
