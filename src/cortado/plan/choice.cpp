#include "cortado/plan/choice.h"

#include <algorithm>

namespace cortado::plan {
namespace {

// Those that fit and are possible, the fastest first; of equal strategies the first one alone.
std::vector<Choice::Candidate> built_in_candidates(const Plan& plan, const Network& network, int devices) {
  std::vector<Choice::Candidate> candidates;
  for (std::string_view name : built_in_strategies()) {
    const Assignment& one = *std::ranges::find(plan.baselines, name, &Assignment::name);
    Strategy strategy = built_in_strategy(name, network, devices);
    const bool known = std::ranges::any_of(
        candidates, [&](const Choice::Candidate& other) { return other.seconds == one.seconds; });
    if (plan.fits(one.memory) && !known)
      candidates.push_back({std::string(name), std::move(strategy), one.seconds});
  }
  std::ranges::stable_sort(candidates, {}, &Choice::Candidate::seconds);
  return candidates;
}

}  // namespace

Choice choose(const Network& network, const PricingOptions& pricing, CostModel& costs,
              const std::vector<int>& node_of_device, Bytes memory) {
  Choice choice;
  try {
    choice.plan = make_plan(network, pricing, costs, node_of_device, {.memory = memory});
  } catch (const NothingFits& error) {
    choice.misfit = error.what();
    choice.plan = make_plan(network, pricing, costs, node_of_device);
  }
  const double planned = choice.plan.seconds.count;
  choice.candidates = built_in_candidates(choice.plan, network, pricing.devices);
  if (!choice.candidates.empty()) {
    const double best = choice.candidates[0].seconds.count;
    std::erase_if(choice.candidates, [&](const Choice::Candidate& candidate) {
      return candidate.seconds.count > about_equal * best;
    });
  }
  if (choice.candidates.empty() || choice.candidates[0].seconds.count > about_equal * planned) {
    choice.candidates.insert(choice.candidates.begin(), {"", choice.plan.strategy, choice.plan.seconds});
  }
  return choice;
}

}  // namespace cortado::plan
