#pragma once

#include <cstdint>
#include <vector>

#include "cortado/plan/cost_graph.h"

namespace cortado::plan {

// The order in which vertices are eliminated, and what that takes.
struct EliminationOrder {
  std::vector<int> vertices;
  double products = 0;     // additions of the min-plus products
  Bytes tables;            // all tables together, the graph's among them, while the search runs
  Bytes largest;           // table
  std::vector<int> scope;  // of the largest
};

// The better of two greedy orders: by the size of the product (min-weight), and by how many edges come in
// (min-fill). The one with fewer products is taken, of those whose tables stay below `limit` if there are
// any. In both, vertices with one neighbour or two come first, those with few candidates before others. Any
// order gives the same optimum.
EliminationOrder elimination_order(const CostGraph& graph, Bytes limit);

// What a given order takes.
EliminationOrder measured_order(const CostGraph& graph, const std::vector<int>& vertices);

}  // namespace cortado::plan
