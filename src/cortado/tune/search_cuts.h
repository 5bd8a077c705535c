#pragma once

#include <vector>

#include "cortado/tune/cut_choice.h"
#include "cortado/tune/strategy_costs.h"

namespace cortado {

struct CutSearchOptions {
  int most_tried = 1000;  // strategies that are simulated, at most
};

struct FoundCuts {
  Strategy strategy;
  Seconds seconds, before;  // of an iteration under it, and under the start
  // No choice of these ways takes less. Where it is `seconds`, that is the least of all.
  Seconds lower_bound;
  int tried = 0;
};

// Searches for the ways to cut layers under which a simulated iteration takes least, by branch and bound:
// some of the choices are made, and CutBound says what an iteration takes at least, whatever the others are.
// What has the lowest bound is looked at first; what is bounded by no less than the best time found is left
// out. `start`: with_all_rules(); its layers are cut in one of their ways, or in another way that is tried,
// too.
FoundCuts search_cuts(const Strategy& start, const Network& network, const std::vector<CutChoice>& choices,
                      const StrategyCosts& costs, const CutSearchOptions& options = {});

}  // namespace cortado
