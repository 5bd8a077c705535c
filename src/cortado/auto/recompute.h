#pragma once

#include <string>

#include "cortado/comm/communicator.h"
#include "cortado/machine/device_graph.h"
#include "cortado/measure/job_costs.h"
#include "cortado/parallel/schedule_changes.h"
#include "cortado/plan/plan_on_machine.h"

namespace cortado {

// Where `changes` have a limit of memory, gives `strategy` the layers to compute again that keep every rank
// under it (tune/recompute.h). Returns the line that says what was chosen; empty without a limit. Throws
// UserError where nothing fits.

// On a machine that need not be present, by its figures.
std::string recompute_on_machine(const ScheduleChanges& changes, const Network& network,
                                 const DeviceGraph& machine, Strategy& strategy, Spelling spelled);
// On the ranks of this job, by costs measured here. All ranks call it and get the same. `kernels`: as
// JobCosts has them. `device`: this rank's. `history`: tensors of a parameter's size that the solver keeps.
std::string recompute_on_job(const ScheduleChanges& changes, const Network& network, Communicator& job,
                             const std::string& kernels, int history, Strategy& strategy, Spelling spelled,
                             const Notices& notify, device::DeviceRuntime& device = device::host());

// Plans as plan::plan_on_machine() does; with `recompute`, layers are computed again where that fits and
// takes less, by simulations, than the best plan without. Costs in the plan are those of its cuts alone; what
// is added is in Plan::recomputation. Where a frontier is asked for, too, Plan::recompute_frontier says what
// the plan's cuts take with less memory.
plan::Plan plan_recomputed(const plan::PlanRequest& request, const DeviceGraph& machine, int devices,
                           bool recompute);

// The same; `by_simulation`: a simulation chooses between plans (PlanOptions::judge), and puts branches side
// by side on devices of their own where that gains enough (tune/place_branches.h).
plan::Plan plan_for(plan::PlanRequest request, const DeviceGraph& machine, int devices, bool recompute,
                    bool by_simulation);

}  // namespace cortado
