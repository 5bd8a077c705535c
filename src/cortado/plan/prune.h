#pragma once

#include <vector>

#include "cortado/plan/cost_graph.h"

namespace cortado::plan {

// The graph with these candidates of each vertex alone.
CostGraph restricted(const CostGraph& graph, const std::vector<std::vector<int>>& kept);

// A graph with fewer candidates, and which ones they were.
struct Pruned {
  CostGraph graph;
  std::vector<std::vector<int>> kept;  // per vertex: the original candidate of each that is left
  int impossible = 0, identical = 0, dominated = 0;  // candidates that went

  std::vector<int> original(const std::vector<int>& assignment) const;
};

enum class Keep {
  optimum,  // some assignment of least seconds
  frontier  // for every assignment one that takes no more seconds and no more bytes
};

// Takes out candidates that are impossible (infinite with whatever their neighbours take), identical to one
// of lower number, or dominated by another. Costs must be exact (quantum_of); no parallel edges.
//
// Candidate a of v is dominated by b when
//   slack(a, b) = cost(a) - cost(b) + sum over v's edges e of min over x of (e(a, x) - e(b, x)) >= 0
// over the candidates x that the neighbour at e has left. Then whatever the neighbours take, b in place of a
// costs no more: the difference is at least the slack. With Keep::frontier b also has no more bytes.
// slack(a, c) >= slack(a, b) + slack(b, c), so "dominated" is a preorder; of candidates that dominate each
// other the lowest stays. What is left is a strict partial order: every candidate that goes has a dominator
// that stays. Two adjacent vertices may be pruned at once, against each other's full sets: replace first at
// one, then at the other, and the cost never rises. Rounds go on while they help, as fewer x dominate more.
Pruned pruned(const CostGraph& graph, Keep keep);

}  // namespace cortado::plan
