#include "cortado/app/auto_strategy.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>

#include "cortado/app/job_costs.h"
#include "cortado/app/job_machine.h"
#include "cortado/plan/planner.h"

namespace cortado {
namespace {

double ratio_to(const plan::Plan& plan, std::string_view baseline) {
  const auto found =
      std::ranges::find(plan.baselines, baseline, [](const auto& entry) { return entry.first; });
  return found->second.count / plan.seconds.count;
}

// The layers of a plan that are cut another way than by sample over all ranks.
size_t not_by_sample(const plan::Plan& plan, int ranks) {
  return static_cast<size_t>(std::ranges::count_if(plan.groups, [&](const plan::PlannedGroup& group) {
    return group.strategy.config.degrees.n != ranks;
  }));
}

}  // namespace

Strategy auto_strategy(const Network& network, Communicator& job, const std::string& kernels) {
  if (job.size() == 1) return built_in_strategy("single", network, 1);
  const auto begin = std::chrono::steady_clock::now();
  JobCosts costs(job, kernels);
  const plan::Plan plan = plan::make_plan(network, {.devices = job.size()}, costs.costs(), costs.nodes());
  costs.save();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const bool cached = costs.measurements() == 0 && !costs.machine_measured();
  fmt::print(
      "strategy auto: {} of {} layers not cut by sample; {:.2f}x faster than data, {:.2f}x than owt; "
      "planned in {:.1f} s{}\n",
      not_by_sample(plan, job.size()), plan.groups.size(), ratio_to(plan, "data"), ratio_to(plan, "owt"),
      seconds.count(), cached ? " (cached)" : fmt::format(" ({} tasks measured)", costs.measurements()));
  std::fflush(stdout);
  return parse_strategy(from_first_rank(job, strategy_text(plan.strategy)), "strategy auto");
}

Strategy strategy_for_job(const std::string& name, const Network& network, Communicator& job,
                          const std::string& kernels) {
  return name == "auto" ? auto_strategy(network, job, kernels) : load_strategy(name, network, job.size());
}

}  // namespace cortado
