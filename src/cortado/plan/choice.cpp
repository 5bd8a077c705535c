#include "cortado/plan/choice.h"

#include <algorithm>

#include "cortado/plan/strategy_seconds.h"

namespace cortado::plan {
namespace {

// Those that fit and are possible, the fastest first; of those that are priced equal the first one alone.
std::vector<Choice::Candidate> built_in_candidates(const Plan& plan, const Network& network,
                                                   const PricingOptions& pricing) {
  std::vector<Choice::Candidate> candidates;
  for (std::string_view name : compared_strategies(pricing)) {
    if (is_opponent(name)) continue;
    const Assignment& one = *std::ranges::find(plan.baselines, name, &Assignment::name);
    Strategy strategy = built_in_strategy(name, network, pricing.devices);
    const bool known = std::ranges::any_of(
        candidates, [&](const Choice::Candidate& other) { return other.seconds == one.seconds; });
    if (plan.fits(one.memory) && !known)
      candidates.push_back({std::string(name), std::move(strategy), one.seconds});
  }
  std::ranges::stable_sort(candidates, {}, &Choice::Candidate::seconds);
  return candidates;
}

// The plan, or the plan with its layers spread over the devices, whichever costs less.
Choice::Candidate planned_candidate(const Plan& plan, const Network& network, const PricingOptions& pricing,
                                    CostModel& costs, const std::vector<int>& node_of_device) {
  Choice::Candidate planned{"", plan.strategy, plan.seconds};
  Strategy other = spread(plan.strategy);
  if (other == plan.strategy) return planned;
  const Seconds seconds = strategy_seconds(network, other, pricing, costs, node_of_device);
  if (seconds <= plan.seconds) planned = {"", std::move(other), seconds};
  return planned;
}

// Judges those that may be worth trying beside the best one, and leaves the others out.
std::vector<Choice::Candidate> judged(std::vector<Choice::Candidate> built_in, Seconds best,
                                      const Judge& judge) {
  std::vector<Choice::Candidate> judged;
  for (Choice::Candidate& candidate : built_in) {
    if (candidate.built_in != "data" && candidate.seconds.count > at_most_hidden * worth_trying * best.count)
      continue;
    candidate.seconds = judge(candidate.strategy);
    best = std::min(best, candidate.seconds);
    judged.push_back(std::move(candidate));
  }
  std::ranges::stable_sort(judged, {}, &Choice::Candidate::seconds);
  return judged;
}

}  // namespace

Choice choose(const Network& network, const PricingOptions& pricing, CostModel& costs,
              const std::vector<int>& node_of_device, Bytes memory, const Judge& judge) {
  Choice choice;
  try {
    choice.plan = make_plan(network, pricing, costs, node_of_device, {.memory = memory});
  } catch (const NothingFits& error) {
    choice.misfit = error.what();
    choice.plan = make_plan(network, pricing, costs, node_of_device);
  }
  Choice::Candidate planned = planned_candidate(choice.plan, network, pricing, costs, node_of_device);
  std::vector<Choice::Candidate> built_in = built_in_candidates(choice.plan, network, pricing);
  if (judge) {
    std::erase_if(built_in, [&](const Choice::Candidate& candidate) {
      return candidate.built_in != "data" &&
             candidate.seconds.count > at_most_hidden * choice.plan.seconds.count;
    });
    planned.seconds = judge(planned.strategy);
    built_in = judged(std::move(built_in), planned.seconds, judge);
  }
  if (built_in.empty() || built_in[0].seconds.count > clearly_less * planned.seconds.count)
    choice.candidates.push_back(std::move(planned));
  for (Choice::Candidate& candidate : built_in) {
    const bool rival = candidate.seconds.count <= worth_trying * built_in[0].seconds.count;
    (rival ? choice.candidates : choice.others).push_back(candidate);
  }
  return choice;
}

}  // namespace cortado::plan
