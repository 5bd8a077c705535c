#include "cortado/auto/recompute.h"

#include <fmt/format.h>
#include <optional>

#include "cortado/auto/refine_by_simulation.h"
#include "cortado/base/error.h"
#include "cortado/measure/job_machine.h"
#include "cortado/tune/recompute.h"
#include "cortado/tune/tune_on_machine.h"

namespace cortado {
namespace {

std::string take(RecomputedStrategy found, Strategy& strategy) {
  strategy = std::move(found.strategy);
  return fmt::format("recomputation: {}\n", found.text());
}

}  // namespace

std::string recompute_on_machine(const ScheduleChanges& changes, const Network& network,
                                 const DeviceGraph& machine, Strategy& strategy, Spelling spelled) {
  const std::optional<Bytes> limit = memory_limit_of(changes, spelled);
  if (!limit) return "";
  AbsentMachine absent(machine);
  return take(recompute_within(*limit, absent.simulated(), network, strategy, 1, spelled("memory-limit")),
              strategy);
}

std::string recompute_on_job(const ScheduleChanges& changes, const Network& network, Communicator& job,
                             const std::string& kernels, int history, Strategy& strategy, Spelling spelled,
                             const Notices& notify, device::DeviceRuntime& device) {
  const std::optional<Bytes> limit = memory_limit_of(changes, spelled);
  if (!limit) return "";
  JobCosts costs(job, kernels, notify, device);
  RecomputedStrategy found =
      recompute_within(*limit, costs.simulated(), network, strategy, history, spelled("memory-limit"));
  costs.save();
  found.strategy = parse_strategy(from_first_rank(job, strategy_text(found.strategy)), "recomputation");
  return take(std::move(found), strategy);
}

namespace {

plan::Plan plan_within(const plan::PlanRequest& request, const DeviceGraph& machine, int devices,
                       bool recompute) {
  const Bytes limit = request.options.memory;
  if (!recompute || limit.count == 0) return plan::plan_on_machine(request, machine, devices);
  std::optional<plan::Plan> fitting;  // without recomputation
  try {
    fitting = plan::plan_on_machine(request, machine, devices);
    if (!fitting->limited) return *fitting;
  } catch (const UserError&) {  // nothing fits; what is computed again may
  }
  plan::PlanRequest free = request;
  free.options.memory = {};
  plan::Plan plan = plan::plan_on_machine(free, machine, devices);
  const DeviceGraph used = machine.first(devices);
  AbsentMachine absent(used);
  const SimulatedMachine simulated = absent.simulated();
  RecomputedStrategy again;
  try {
    again = recompute_within(limit, simulated, request.network, plan.strategy, request.history, "plan");
  } catch (const UserError&) {
    if (fitting) return *fitting;
    throw;
  }
  if (fitting && simulated_seconds(request.network, simulated)(fitting->strategy) <= again.iteration)
    return *fitting;
  plan.memory_limit = limit;
  plan.memory = again.memory;
  plan.strategy = again.strategy;
  plan.recomputation = again.text();
  return plan;
}

// What the plan's cuts take with less memory, layers computed again.
std::vector<plan::RecomputeTradeoff> recompute_tradeoffs(const plan::PlanRequest& request,
                                                         const DeviceGraph& used, Strategy cuts) {
  for (Strategy::Rule& rule : cuts.rules) rule.layer.recompute = false;
  AbsentMachine absent(used);
  std::vector<plan::RecomputeTradeoff> tradeoffs;
  for (const RecomputedStrategy& point : recompute_frontier(
           request.options.frontier_points, absent.simulated(), request.network, cuts, request.history))
    tradeoffs.push_back({point.memory, point.iteration, point.added, point.lower_bound, point.layers});
  return tradeoffs;
}

}  // namespace

plan::Plan plan_recomputed(const plan::PlanRequest& request, const DeviceGraph& machine, int devices,
                           bool recompute) {
  plan::Plan plan = plan_within(request, machine, devices, recompute);
  if (recompute && request.options.frontier_points > 0)
    plan.recompute_frontier = recompute_tradeoffs(request, machine.first(devices), plan.strategy);
  return plan;
}

plan::Plan plan_for(plan::PlanRequest request, const DeviceGraph& machine, int devices, bool recompute,
                    bool by_simulation) {
  const DeviceGraph used = machine.first(devices);
  AbsentMachine absent(used);
  if (by_simulation) request.options.judge = simulated_seconds(request.network, absent.simulated());
  plan::Plan plan = plan_recomputed(request, machine, devices, recompute);
  if (by_simulation) refine_by_simulation(plan, request, absent.simulated());
  return plan;
}

}  // namespace cortado
