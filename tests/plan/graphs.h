#pragma once

#include <cstdint>
#include <random>

#include "cortado/plan/cost_graph.h"

namespace cortado::plan {

// The cases of random tests: CORTADO_PLAN_CASES of them (otherwise `usual`), from seed CORTADO_PLAN_SEED on.
struct Cases {
  explicit Cases(int usual);
  uint64_t first = 1;
  int count = 0;
};

struct GraphShape {
  int most_vertices = 7, most_candidates = 5;
  bool infinite = false;  // some costs are infinite
  bool ties = false;      // costs are small whole numbers, so that many assignments cost the same
};

// Any topology: isolated vertices, several components, cycles, parallel edges in both directions. Bytes are
// random and roughly opposed to seconds.
CostGraph random_graph(uint64_t seed, const GraphShape& shape = {});

// The same graph with its vertices in another order: vertex order[i] becomes i.
CostGraph reordered(const CostGraph& graph, const std::vector<int>& order);

// Vertices 0 ... n-1 of `candidates` each, random costs, these edges.
CostGraph graph_of(uint64_t seed, int vertices, int candidates,
                   const std::vector<std::pair<int, int>>& edges);

}  // namespace cortado::plan
