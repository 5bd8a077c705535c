#include "cortado/plan/marginals.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "cortado/base/error.h"
#include "cortado/plan/exhaustive.h"
#include "cortado/plan/search.h"
#include "cortado/plan/twins.h"

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

// Each vertex gets candidates that are one of its own, but for what they cost themselves.
CostGraph with_twins(const CostGraph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<int>> of(static_cast<size_t>(graph.size()));
  CostGraph result;
  for (int v = 0; v < graph.size(); ++v) {
    const std::vector<double>& own = graph.vertices()[v].seconds;
    std::vector<double> seconds;
    const int candidates = static_cast<int>(own.size());
    for (int c = 0; c < candidates + 2; ++c) {
      of[v].push_back(c < candidates ? c : static_cast<int>(random() % own.size()));
      seconds.push_back(own[static_cast<size_t>(of[v].back())] +
                        (c < candidates ? 0 : static_cast<double>(random() % 3) - 1));
    }
    result.add_vertex(graph.vertices()[v].name, std::move(seconds));
  }
  for (const CostGraph::Edge& edge : graph.edges()) {
    std::vector<double> seconds;
    for (int a : of[edge.from])
      for (int b : of[edge.to])
        seconds.push_back((*edge.seconds)[int64_t{a} * graph.candidates(edge.to) + b]);
    result.add_edge(edge.from, edge.to, std::move(seconds));
  }
  return result;
}

TEST(MinMarginals, OfTwinsEqualExhaustiveSearch) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    const CostGraph graph = with_twins(
        random_graph(seed, {.most_vertices = 4, .most_candidates = 4, .ties = seed % 2 == 0}), seed);
    const Twins twins = twins_of(without_parallel_edges(graph));
    EXPECT_TRUE(twins.any);
    std::vector<std::vector<double>> expected;
    for (int v = 0; v < graph.size(); ++v) {
      EXPECT_LE(std::ssize(twins.kept[v]), graph.candidates(v) - 2);
      expected.emplace_back(static_cast<size_t>(graph.candidates(v)), INFINITY);
    }
    for_each_assignment(graph, 1'000'000, [&](const std::vector<int>& assignment, double seconds) {
      for (int v = 0; v < graph.size(); ++v)
        expected[v][assignment[v]] = std::min(expected[v][assignment[v]], seconds);
    });
    EXPECT_EQ(min_marginals(graph), expected);
    EXPECT_EQ(search(graph).seconds, exhaustive_search(graph).seconds);
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
