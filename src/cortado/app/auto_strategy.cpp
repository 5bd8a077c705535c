#include "cortado/app/auto_strategy.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>

#include "cortado/app/job_costs.h"
#include "cortado/app/job_machine.h"
#include "cortado/base/error.h"
#include "cortado/plan/planner.h"

namespace cortado {
namespace {

// Costs are true to about a tenth: a plan that gains less than that over a built-in strategy, which waits for
// other ranks at fewer places, may lose.
constexpr double least_gain = 1.1;

Seconds seconds_of(const plan::Plan& plan, std::string_view baseline) {
  return std::ranges::find(plan.baselines, baseline, &plan::Assignment::name)->seconds;
}

// The layers of a plan that are cut another way than by sample over all ranks.
size_t not_by_sample(const plan::Plan& plan, int ranks) {
  return static_cast<size_t>(std::ranges::count_if(plan.groups, [&](const plan::PlannedGroup& group) {
    return group.strategy.config.degrees.n != ranks;
  }));
}

// Prints what was chosen and gives it.
Strategy chosen(const plan::Plan& plan, const Network& network, int ranks, const std::string& planning) {
  const auto names = built_in_strategies();
  const std::string_view best =
      *std::ranges::min_element(names, {}, [&](std::string_view name) { return seconds_of(plan, name); });
  const bool built_in = seconds_of(plan, best).count <= least_gain * plan.seconds.count;
  const Seconds taken = built_in ? seconds_of(plan, best) : plan.seconds;
  const std::string what = built_in ? fmt::format("as {}, which no plan beats by 10 %", best)
                                    : fmt::format("{} of {} layers not cut by sample",
                                                  not_by_sample(plan, ranks), plan.groups.size());
  fmt::print("strategy auto: {}; {:.2f}x faster than data, {:.2f}x than owt; {}\n", what,
             seconds_of(plan, "data").count / taken.count, seconds_of(plan, "owt").count / taken.count,
             planning);
  std::fflush(stdout);
  return built_in ? built_in_strategy(best, network, ranks) : plan.strategy;
}

// Why the job cannot be planned for; empty: it can.
std::string obstacle(Communicator& job) {
  try {
    nodes_of_ranks(facts_of_job(job));
    return "";
  } catch (const UserError& problem) {
    return problem.what();
  }
}

}  // namespace

Strategy auto_strategy(const Network& network, Communicator& job, const std::string& kernels) {
  if (job.size() == 1) return built_in_strategy("single", network, 1);
  if (const std::string reason = obstacle(job); !reason.empty()) {
    fmt::print("strategy auto: as data; no plan: {}\n", reason);
    return built_in_strategy("data", network, job.size());
  }
  const auto begin = std::chrono::steady_clock::now();
  JobCosts costs(job, kernels);
  const plan::Plan plan = plan::make_plan(network, {.devices = job.size()}, costs.costs(), costs.nodes());
  costs.save();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const bool cached = costs.measurements() == 0 && !costs.machine_measured();
  const Strategy strategy =
      chosen(plan, network, job.size(),
             fmt::format("planned in {:.1f} s ({})", seconds.count(),
                         cached ? "cached" : fmt::format("{} tasks measured", costs.measurements())));
  return parse_strategy(from_first_rank(job, strategy_text(strategy)), "strategy auto");
}

Strategy strategy_for_job(const std::string& name, const Network& network, Communicator& job,
                          const std::string& kernels) {
  return name == "auto" ? auto_strategy(network, job, kernels) : load_strategy(name, network, job.size());
}

}  // namespace cortado
