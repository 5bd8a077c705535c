#include "cortado/plan/search.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/plan/exhaustive.h"
#include "cortado/plan/prepared.h"

#include "tests/plan/graphs.h"

namespace cortado::plan {
namespace {

const std::vector<GraphShape> searched_shapes = {
    {}, {.ties = true}, {.infinite = true}, {.infinite = true, .ties = true}};

// Whether both find the same least seconds, bit for bit, or both find nothing possible.
void expect_equal_to_exhaustive(const CostGraph& graph, const SearchOptions& options) {
  Optimum expected;
  try {
    expected = exhaustive_search(graph);
  } catch (const UserError&) {
    EXPECT_THROW(search(graph, options), UserError);
    return;
  }
  const Optimum found = search(graph, options);
  EXPECT_EQ(found.seconds, expected.seconds);
  EXPECT_NEAR(graph.seconds(found.assignment), expected.seconds, 1e-11 * (1 + expected.seconds));
  EXPECT_EQ(found.bytes, graph.bytes(found.assignment));
}

TEST(Search, EqualsExhaustiveSearchOnAnyGraph) {
  const Cases cases(500);
  for (int i = 0; i < cases.count; ++i) {
    SCOPED_TRACE("CORTADO_PLAN_SEED=" + std::to_string(cases.first + i) + " CORTADO_PLAN_CASES=1");
    for (const GraphShape& shape : searched_shapes) {
      const CostGraph graph = random_graph(cases.first + i, shape);
      expect_equal_to_exhaustive(graph, {.prune = PruneFirst::always});
      expect_equal_to_exhaustive(graph, {.prune = PruneFirst::never});
    }
  }
}

// Min-plus products have blocks of rows, panels of columns and shares of threads: sizes around them, against
// loops.
TEST(Search, ProductsOfAnySizeEqualLoops) {
  for (const std::vector<int>& sizes :
       {std::vector<int>{1, 1, 1}, {2, 7, 9}, {5, 16, 3}, {33, 31, 65}, {64, 70, 40}, {130, 130, 130}}) {
    std::mt19937_64 random(7);
    auto table = [&](std::vector<int> scope) {
      Table result{scope, {}, {}};
      int64_t count = 1;
      for (int vertex : scope) {
        result.sizes.push_back(sizes[vertex]);
        count *= sizes[vertex];
      }
      auto values = std::make_shared<std::vector<double>>(static_cast<size_t>(count));
      for (double& value : *values) value = static_cast<double>(random() % 1000);
      result.values = values;
      return result;
    };
    for (const bool joint : {false, true}) {
      std::vector<Table> tables = {table({0, 1}), table({2, 1}), table({1})};
      if (joint) tables.push_back(table({2, 1, 0}));
      const std::vector<Table> before = tables;
      const Table found = minimized(tables, 1);
      for (int a = 0; a < sizes[0]; ++a) {
        for (int c = 0; c < sizes[2]; ++c) {
          double least = INFINITY;
          for (int b = 0; b < sizes[1]; ++b) {
            const std::vector<int> assignment{a, b, c};
            double sum = 0;
            for (const Table& each : before) sum += (*each.values)[each.index(assignment)];
            least = std::min(least, sum);
          }
          ASSERT_EQ((*found.values)[found.index(std::vector<int>{a, 0, c})], least);
        }
      }
    }
  }
}

TEST(Search, AnyOrderOfVerticesGivesTheSameCost) {
  const Cases cases(100);
  for (int i = 0; i < cases.count; ++i) {
    SCOPED_TRACE("CORTADO_PLAN_SEED=" + std::to_string(cases.first + i) + " CORTADO_PLAN_CASES=1");
    const CostGraph graph = random_graph(cases.first + i, {.most_vertices = 10, .most_candidates = 4});
    const double expected = search(graph).seconds;
    std::vector<int> order(static_cast<size_t>(graph.size()));
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 random(cases.first + i);
    for (int round = 0; round < 3; ++round) {
      std::ranges::shuffle(order, random);
      EXPECT_EQ(search(reordered(graph, order)).seconds, expected);
      // Eliminated in that order, however large the tables.
      const CostGraph exact = without_parallel_edges(rounded(graph, quantum_of(graph)));
      const Elimination elimination(exact, order, false);
      EXPECT_EQ(elimination.optimum(), expected);
      EXPECT_EQ(exact.seconds(elimination.assignment()), expected);
    }
  }
}

TEST(Search, GivesTheSameAssignmentEachTimeOnAnyNumberOfThreads) {
  // Ties, in small graphs; and graphs large enough that threads share pruning and products.
  std::vector<CostGraph> graphs;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    graphs.push_back(random_graph(seed, {.most_vertices = 9, .most_candidates = 5, .ties = true}));
  graphs.push_back(graph_of(1, 4, 150, {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {1, 3}}));
  std::vector<std::pair<int, int>> chain;
  for (int v = 0; v + 1 < 30; ++v) chain.push_back({v, v + 1});
  graphs.push_back(graph_of(1, 30, 280, chain));
  const int before = compute_threads();
  for (const CostGraph& graph : graphs) {
    const std::vector<int> expected = search(graph).assignment;
    for (int threads : {1, 2, 3, 2}) {
      set_compute_threads(threads);
      EXPECT_EQ(search(graph).assignment, expected);
    }
  }
  set_compute_threads(before);
}

TEST(Search, OfEqualCandidatesTheLowestIsTaken) {
  CostGraph graph;
  graph.add_vertex("a", {2, 1, 1, 1});
  graph.add_vertex("b", {5, 5});
  graph.add_edge(0, 1, std::vector<double>(8, 3.0));
  for (const PruneFirst prune : {PruneFirst::never, PruneFirst::always})
    EXPECT_EQ(search(graph, {.prune = prune}).assignment, (std::vector<int>{1, 0}));
}

TEST(Search, ACompleteGraphNeedsGeneralElimination) {
  std::vector<std::pair<int, int>> edges;
  for (int a = 0; a < 6; ++a)
    for (int b = a + 1; b < 6; ++b) edges.push_back({a, b});
  const CostGraph graph = graph_of(3, 6, 6, edges);
  const Optimum found = search(graph);
  EXPECT_EQ(found.seconds, exhaustive_search(graph).seconds);
  EXPECT_GT(found.statistics.eliminations.general, 0);
  EXPECT_TRUE(found.proven);
}

TEST(Search, ChainsAndDiamondsNeedNoGeneralElimination) {
  const CostGraph chain = graph_of(1, 6, 5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}});
  const Optimum of_chain = search(chain);
  EXPECT_EQ(of_chain.seconds, exhaustive_search(chain).seconds);
  EXPECT_EQ(of_chain.statistics.eliminations.leaves, 6);
  const CostGraph diamond = graph_of(1, 6, 5, {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}, {3, 4}, {4, 5}});
  const Optimum of_diamond = search(diamond);
  EXPECT_EQ(of_diamond.seconds, exhaustive_search(diamond).seconds);
  EXPECT_EQ(of_diamond.statistics.eliminations.general, 0);
  EXPECT_EQ(of_diamond.statistics.eliminations.nodes, 3);
  EXPECT_EQ(of_diamond.statistics.eliminations.edges, 2);
}

// Candidates made to be dominated, by a little or not at all, go; those that win somewhere stay.
TEST(Search, PruningTakesOutWhatIsDominated) {
  CostGraph graph;
  graph.add_vertex("a", {1, 1, 2.5, 4});
  graph.add_vertex("b", {1, 1});
  // Against candidate 0: 1 is identical, 2 costs 1.5 more and saves 1 at most, 3 costs 3 more and saves 4.
  graph.add_edge(0, 1, {5, 6, 5, 6, 4, 6, 1, 6});
  const Optimum found = search(graph, {.prune = PruneFirst::always});
  EXPECT_EQ(found.statistics.identical, 1);
  EXPECT_GE(found.statistics.dominated, 1);
  EXPECT_EQ(found.assignment, (std::vector<int>{3, 0}));
}

TEST(Search, RefusesTablesBeyondTheLimitAndSaysWhatWasNeeded) {
  std::vector<std::pair<int, int>> edges;
  for (int a = 0; a < 7; ++a)
    for (int b = a + 1; b < 7; ++b) edges.push_back({a, b});
  const CostGraph graph = graph_of(3, 7, 30, edges);
  try {
    search(graph, {.table_limit = {1 << 20}, .prune = PruneFirst::never});
    FAIL();
  } catch (const UserError& error) {
    const std::string message = error.what();
    // 21 edges of 900 entries; messages of 30^6, 30^5, ..., 30^3; 30^6 on its way: 11.1 GiB. Largest 5.4.
    EXPECT_NE(message.find("needs 11.1 GiB"), std::string::npos) << message;
    EXPECT_NE(message.find("may use 1.0 MiB"), std::string::npos) << message;
    EXPECT_NE(message.find("of 5.4 GiB"), std::string::npos) << message;
    EXPECT_NE(message.find("v6 (30)"), std::string::npos) << message;
  }
  EXPECT_THROW(min_marginals(graph), UserError);
}

TEST(Search, RefusesWhatIsImpossible) {
  CostGraph graph;
  graph.add_vertex("a", {1, 2});
  graph.add_vertex("b", {1});
  graph.add_edge(0, 1, {INFINITY, INFINITY});
  EXPECT_THROW(search(graph), UserError);
  EXPECT_THROW(min_marginals(graph), UserError);
  EXPECT_THROW(exhaustive_search(graph), UserError);
}

TEST(Search, ExhaustiveSearchRefusesTooMany) {
  EXPECT_THROW(exhaustive_search(graph_of(1, 10, 10, {}), 50), UserError);
}

TEST(Search, GraphsAreChecked) {
  CostGraph graph;
  EXPECT_THROW(graph.add_vertex("a", {}), InternalError);
  EXPECT_THROW(graph.add_vertex("a", {NAN}), InternalError);
  EXPECT_THROW(graph.add_vertex("a", {1, 2}, {{1}}), InternalError);
  graph.add_vertex("a", {1, 2});
  graph.add_vertex("b", {1, 2, 3});
  EXPECT_THROW(graph.add_edge(0, 1, std::vector<double>(5)), InternalError);
  EXPECT_THROW(graph.add_edge(0, 0, std::vector<double>(4)), InternalError);
  EXPECT_THROW(graph.add_edge(0, 2, std::vector<double>(4)), InternalError);
  EXPECT_THROW(graph.add_edge(0, 1, std::vector<double>(6, -INFINITY)), InternalError);
  EXPECT_THROW(graph.set_seconds(0, 2, 1), InternalError);
}

// Bounds below a hidden table of costs: the result is the hidden optimum, for a part of the measurements.
TEST(Search, LazyMeasurementFindsTheMeasuredOptimum) {
  const Cases cases(100);
  int64_t measured = 0, all = 0;
  for (int i = 0; i < cases.count; ++i) {
    SCOPED_TRACE("CORTADO_PLAN_SEED=" + std::to_string(cases.first + i) + " CORTADO_PLAN_CASES=1");
    const CostGraph truth = random_graph(cases.first + i);
    CostGraph bounds = truth;
    std::mt19937_64 random(cases.first + i);
    for (int v = 0; v < truth.size(); ++v)
      for (int a = 0; a < truth.candidates(v); ++a)
        bounds.set_seconds(
            v, a, truth.vertices()[v].seconds[a] * std::uniform_real_distribution<double>(0.3, 1)(random));
    std::set<std::pair<int, int>> known;
    const LazyOptimum found = lazy_search(
        bounds,
        [&](int v, int a) {
          return known.contains({v, a});
        },
        [&](CostGraph& graph, int v, int a) {
          EXPECT_TRUE(known.insert({v, a}).second) << "measured twice";
          graph.set_seconds(v, a, truth.vertices()[v].seconds[a]);
        });
    EXPECT_NEAR(found.optimum.seconds, exhaustive_search(truth).seconds, 1e-10);
    EXPECT_NEAR(truth.seconds(found.optimum.assignment), found.optimum.seconds, 1e-10);
    EXPECT_EQ(found.measurements, static_cast<int>(known.size()));
    measured += found.measurements;
    for (int v = 0; v < truth.size(); ++v) all += truth.candidates(v);
  }
  EXPECT_LT(measured, all * 9 / 10);
}

}  // namespace
}  // namespace cortado::plan
