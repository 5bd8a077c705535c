#include "cortado/auto/choose_strategy.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <optional>

#include "cortado/auto/trial.h"
#include "cortado/base/digest.h"
#include "cortado/base/error.h"
#include "cortado/base/seconds_since.h"
#include "cortado/measure/job_costs.h"
#include "cortado/measure/job_machine.h"
#include "cortado/plan/choice.h"
#include "cortado/sim/simulated_job.h"
#include "cortado/tune/tune_on_machine.h"

namespace cortado {
namespace {

// Counts the layers of a plan that are not cut by sample over all ranks.
size_t not_by_sample(const plan::Plan& plan, int ranks) {
  return static_cast<size_t>(std::ranges::count_if(plan.groups, [&](const plan::PlannedGroup& group) {
    return group.strategy.config.degrees.n != ranks;
  }));
}

// Returns the text by which a kept trial is found again.
std::string key_of_trial(const Network& network, const Strategy& strategy, const std::string& kernels) {
  std::string net = network.learns() ? "train\n" : "test\n";
  for (NodeIndex index : indices(network.nodes())) {
    const Network::Node& node = network.nodes()[index];
    net += fmt::format("{} {}{}\n", node.name, identity_of(network, index),
                       network.learns() == (node.phase == Phase::train) ? "" : " in the other phase");
    for (TensorIndex output : node.outputs) net += name_of(network.tensors()[output].type);
  }
  return fmt::format("iteration of net '{}' {:016x} under strategy {:016x} by {} kernels", network.name(),
                     digest(net), digest(strategy_text(strategy)), kernels.empty() ? "any" : kernels);
}

bool writes_files(const Network& network) {
  return std::ranges::any_of(network.nodes(),
                             [](const Network::Node& node) { return node.layer->writes_files(); });
}

// Measured seconds of each candidate; none where there is one alone or a trial would do harm.
struct Trial {
  std::vector<Seconds> seconds;
  int fresh = 0;  // run now, not read from the cache
};
Trial try_candidates(const plan::Choice& choice, const Network& network, Communicator& job, JobCosts& costs,
                     device::DeviceRuntime& device) {
  Trial trial;
  if (choice.candidates.size() < 2 || writes_files(network)) return trial;
  std::vector<std::optional<Seconds>> known;
  const auto key = [&](size_t candidate) {
    return key_of_trial(network, choice.candidates[candidate].strategy, costs.kernels());
  };
  for (size_t i = 0; i < choice.candidates.size(); ++i) known.push_back(costs.times().known(key(i)));
  trial.seconds = try_in_turns(known, [&](size_t candidate) {
    return try_strategy(network, job, choice.candidates[candidate].strategy, costs, device);
  });
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i]) continue;
    ++trial.fresh;
    costs.times().keep(key(i), trial.seconds[i]);
  }
  return trial;
}

// Returns how many times faster the choice is than a built-in strategy: by the trial if both were tried, else
// by simulation if that strategy was simulated, else by the costs of both.
double times_faster_than(std::string_view name, const plan::Choice& choice, size_t taken,
                         const std::vector<Seconds>& trial) {
  const plan::Choice::Candidate& chosen = choice.candidates[taken];
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    if (choice.candidates[i].built_in != name) continue;
    return trial.empty() ? choice.candidates[i].seconds.count / chosen.seconds.count
                         : trial[i].count / trial[taken].count;
  }
  for (const plan::Choice::Candidate& other : choice.others)
    if (other.built_in == name) return other.seconds.count / chosen.seconds.count;
  const auto& baselines = choice.plan.baselines;
  const auto own = std::ranges::find(baselines, chosen.built_in, &plan::Assignment::name);
  const Seconds judged = chosen.built_in.empty() ? choice.plan.seconds : chosen.seconds;
  return std::ranges::find(baselines, name, &plan::Assignment::name)->seconds.count /
         (own == baselines.end() ? judged : own->seconds).count;
}

// A candidate with the schedule, and the ways to sum gradients, that simulations prefer. It is unchanged if
// messages hold up computing little, or if the gain is below the machine's noise.
struct Tuned {
  Strategy strategy;
  double gained = 1;  // times faster
};
Tuned tune_schedule(const Strategy& strategy, const Network& network, JobCosts& costs,
                    const plan::PricingOptions& pricing) {
  const SimulatedJob job =
      simulate_job(network, resolve(strategy, network, costs.machine().devices(), "strategy auto"),
                   strategy.schedule, costs.simulated());
  const Seconds computing = std::ranges::max(job.simulation.computing);
  if (job.simulation.iteration.count < worth_changing * computing.count) return {strategy};
  TunedStrategy found =
      tune_on(costs.simulated(), network, strategy,
              {.cuts = false, .replicate = pricing.replicate, .go_on = {}}, pricing.history);
  const double gained = found.before.count / found.seconds.count;
  if (gained < worth_changing) return {strategy};
  return {std::move(found.strategy), gained};
}

// A candidate with branches on devices of their own. It is unchanged if that gains too little by the
// machine's figures, by simulation with measured costs, or in a trial: ranks of one host that compute
// different layers at a time are not what was measured.
struct Placed {
  Strategy strategy;
  double gained = 1;  // times faster
  int fresh = 0;      // trials run now
};
Placed place_side_by_side(const Strategy& strategy, const Network& network, Communicator& job,
                          JobCosts& costs, int history, device::DeviceRuntime& device) {
  AbsentMachine figures(costs.machine());
  std::string text;
  if (job.rank() == 0) {
    const PlacedStrategy found = place_on(figures.simulated(), network, strategy, history, effort_of_auto);
    if (found.before.count >= worth_changing * found.seconds.count) text = strategy_text(found.strategy);
  }
  text = from_first_rank(job, text);
  if (text.empty() || writes_files(network)) return {strategy};
  const Strategy placed = parse_strategy(text, "strategy auto");
  const auto simulated = simulated_seconds(network, costs.simulated());
  const Seconds before = simulated(strategy);
  if (before.count < worth_changing * simulated(placed).count) return {strategy};
  plan::Choice both;
  both.candidates = {{"", placed, {}}, {"", strategy, {}}};
  const Trial trial = try_candidates(both, network, job, costs, device);
  const double gained = trial.seconds[1].count / trial.seconds[0].count;
  if (gained < worth_changing) return {strategy, 1, trial.fresh};
  return {placed, gained, trial.fresh};
}

// True if replicas on any ranks compute the same gradients to the bit (exec/agreement.h).
bool round_the_same(Communicator& job, const device::DeviceRuntime& device) {
  const std::vector<RankFacts> ranks = facts_of_job(job, device);
  return !mixed_devices(ranks) &&
         std::ranges::all_of(ranks, [&](const RankFacts& one) { return one.threads == ranks[0].threads; });
}

// Returns why no plan can be made for the job; empty: it can.
std::string obstacle(Communicator& job) {
  try {
    nodes_of_ranks(facts_of_job(job));
    return "";
  } catch (const UserError& problem) {
    return problem.what();
  }
}

}  // namespace

AutoChoice choose_strategy(const Network& network, Communicator& job, const std::string& kernels, int history,
                           const Notices& notify, device::DeviceRuntime& device) {
  AutoChoice made;
  if (job.size() == 1) {
    made.strategy = built_in_strategy("single", network, 1);
    return made;
  }
  made.obstacle = obstacle(job);
  if (!made.obstacle.empty()) {
    made.strategy = built_in_strategy("data", network, job.size());
    return made;
  }
  const auto begin = std::chrono::steady_clock::now();
  JobCosts costs(job, kernels, notify, device);
  plan::PricingOptions pricing = plan::pricing_for(costs.machine());
  pricing.history = history;
  pricing.replicate = round_the_same(job, device);
  const plan::Choice choice =
      plan::choose(network, pricing, costs.costs(), costs.machine().node_of_devices(),
                   costs.machine().least_memory(), simulated_seconds(network, costs.simulated()));
  const Trial trial = try_candidates(choice, network, job, costs, device);
  const size_t taken =
      trial.seconds.empty()
          ? 0
          : static_cast<size_t>(std::ranges::min_element(trial.seconds) - trial.seconds.begin());
  const Placed placed =
      place_side_by_side(choice.candidates[taken].strategy, network, job, costs, history, device);
  const Tuned refined = tune_schedule(placed.strategy, network, costs, pricing);
  costs.save();
  made.planned = true;
  made.built_in = choice.candidates[taken].built_in;
  made.layers = choice.plan.groups.size();
  made.layers_not_by_sample = not_by_sample(choice.plan, job.size());
  made.tried = static_cast<int>(trial.seconds.size());
  made.times_faster_than_data = times_faster_than("data", choice, taken, trial.seconds);
  made.times_faster_than_owt = times_faster_than("owt", choice, taken, trial.seconds);
  made.times_faster_side_by_side = placed.gained;
  made.times_faster_by_schedule = refined.gained;
  made.misfit = choice.misfit;
  made.measurements = costs.measurements();
  made.cached =
      made.measurements == 0 && trial.fresh + placed.fresh == 0 && !costs.times().machine_measured();
  made.strategy = parse_strategy(from_first_rank(job, strategy_text(refined.strategy)), "strategy auto");
  made.planning = seconds_since(begin);
  return made;
}

}  // namespace cortado
