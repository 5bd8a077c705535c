#pragma once

#include <vector>

#include "cortado/plan/plan_graph.h"

namespace cortado::plan {

struct Measuring {
  int searches = 0, candidates = 0;  // candidates: measured for it
};

// Measures, where costs are bounds from below (TaskTime::bound), the candidates that `assignments` and an
// optimum use, and no others (lazy_search). Sets their costs in the graph. The optimum is then that of the
// graph in which all candidates are measured.
Measuring measure_optimum(const Network& network, const PricingOptions& options, CostModel& costs,
                          PlanGraph& graph, const std::vector<std::vector<int>>& assignments);

}  // namespace cortado::plan
