#pragma once

#include <string_view>
#include <vector>

#include "cortado/plan/plan_on_machine.h"
#include "cortado/sim/simulated_job.h"
#include "cortado/tune/search_cuts.h"

namespace cortado {

// The ways to cut each group of layers: as the strategy does, first, and by the planner's candidates along
// `dimensions`. Layers that share parameters stay as they are: they are cut alike.
std::vector<CutChoice> cut_choices(const Network& network, int devices, std::string_view dimensions,
                                   const Strategy& strategy);

// Changes a plan that simulations chose (Plan::judged) where others show that an iteration takes less: its
// cuts, by branch and bound where the job is small enough (tune/search_cuts.h); then branches side by side.
// Says what no strategy takes less than.
void refine_by_simulation(plan::Plan& plan, const plan::PlanRequest& request,
                          const SimulatedMachine& machine);

}  // namespace cortado
