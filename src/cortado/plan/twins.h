#pragma once

#include <vector>

#include "cortado/plan/cost_graph.h"

namespace cortado::plan {

// Candidates of a vertex that cost the same together with whatever the neighbours take: ways to sum gradients
// of layers that are cut the same way, for one. The cheapest of them, of equal ones the lowest, stands for
// all.
struct Twins {
  std::vector<std::vector<int>> kept;     // per vertex: those that stand for themselves or others, in order
  std::vector<std::vector<int>> kept_by;  // per vertex and candidate: which of `kept` stands for it
  bool any = false;
};
Twins twins_of(const CostGraph& graph);

}  // namespace cortado::plan
