#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cortado/plan/planner.h"

namespace cortado::plan {

// What `--strategy auto` chooses from. Where there are several candidates, trials decide between them.
struct Choice {
  struct Candidate {
    std::string built_in;  // the strategy's name; empty: the plan's own
    Strategy strategy;
    Seconds seconds;  // of an iteration, as judged
  };
  Plan plan;
  std::vector<Candidate> candidates;  // best first: it is taken where nothing can be tried
  std::vector<Candidate> others;      // built-in strategies that were judged to be too slow to try
  std::string misfit;  // why nothing is sure to fit in the memory, and the choice is made without that limit
};

// Costs are true to about a tenth. A plan is the cheapest of very many strategies, so errors of the costs
// make it look better than it is; and it waits for other ranks at more places than a built-in strategy. So
// the plan is a candidate only where it costs this many times less than the best built-in strategy.
inline constexpr double clearly_less = 1.1;
// Built-in strategies are candidates that cost at most this many times more than the best one: on a machine
// that others use, too, a task of one strategy may be measured too dear, and trying takes less than
// measuring.
inline constexpr double worth_trying = 1.25;
// Communication hidden under computing saves at most half of their sum. So a built-in strategy that costs
// more than this many times the plan, by Eq. 1, is not judged, nor one that could then not be worth trying
// beside what has been judged; only "data" always is, which all are compared with.
inline constexpr double at_most_hidden = 2;

// `memory`: what each device may hold. What a plan holds is known as a bound from above (memory.h), so where
// no plan is sure to fit, the cheapest one may fit all the same; it is taken, and `misfit` says why. `judge`
// is asked about the plan and the built-in strategies; null: Eq. 1 judges.
Choice choose(const Network& network, const PricingOptions& pricing, CostModel& costs,
              const std::vector<int>& node_of_device, Bytes memory, const Judge& judge = {});

}  // namespace cortado::plan
