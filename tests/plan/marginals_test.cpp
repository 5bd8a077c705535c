#include "cortado/plan/marginals.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/plan/exhaustive.h"
#include "cortado/plan/search.h"

#include "tests/plan/graphs.h"

namespace cortado::plan {
namespace {

TEST(MinMarginals, EqualExhaustiveSearch) {
  const Cases cases(300);
  for (int i = 0; i < cases.count; ++i) {
    SCOPED_TRACE("CORTADO_PLAN_SEED=" + std::to_string(cases.first + i) + " CORTADO_PLAN_CASES=1");
    for (const bool infinite : {false, true}) {
      const CostGraph graph = random_graph(cases.first + i, {.most_vertices = 6, .infinite = infinite});
      std::vector<std::vector<double>> expected;
      for (int v = 0; v < graph.size(); ++v)
        expected.emplace_back(static_cast<size_t>(graph.candidates(v)), INFINITY);
      bool possible = false;
      for_each_assignment(graph, 1'000'000, [&](const std::vector<int>& assignment, double seconds) {
        possible |= std::isfinite(seconds);
        for (int v = 0; v < graph.size(); ++v)
          expected[v][assignment[v]] = std::min(expected[v][assignment[v]], seconds);
      });
      if (possible)
        EXPECT_EQ(min_marginals(graph), expected);
      else
        EXPECT_THROW(min_marginals(graph), UserError);
    }
  }
}

// Large enough for blocks and threads; the least of every vertex is the optimum, reached by its candidate.
TEST(MinMarginals, HaveTheOptimumAtEveryVertex) {
  const CostGraph graph = graph_of(5, 7, 130, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {4, 5}});
  const Optimum best = search(graph);
  const std::vector<std::vector<double>> marginals = min_marginals(graph);
  for (int v = 0; v < graph.size(); ++v) {
    EXPECT_EQ(std::ranges::min(marginals[v]), best.seconds);
    EXPECT_EQ(marginals[v][best.assignment[v]], best.seconds);
  }
}

}  // namespace
}  // namespace cortado::plan
