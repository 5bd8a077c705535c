#include "cortado/plan/frontier.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/plan/exhaustive.h"
#include "cortado/plan/limited_search.h"

#include "tests/plan/graphs.h"

namespace cortado::plan {
namespace {

// All possible assignments' (bytes, seconds) that no other one beats in both, by trying everything.
std::vector<std::pair<int64_t, double>> exhaustive_frontier(const CostGraph& graph) {
  std::vector<std::pair<int64_t, double>> all, best;
  for_each_assignment(graph, 1'000'000, [&](const std::vector<int>& assignment, double seconds) {
    if (std::isfinite(seconds)) all.push_back({graph.bytes(assignment).count, seconds});
  });
  std::ranges::sort(all);
  for (const auto& point : all)
    if (best.empty() || point.second < best.back().second) best.push_back(point);
  return best;
}

// Its corners: points that lie below the line between any other two around them.
std::vector<std::pair<int64_t, double>> corners_of(const std::vector<std::pair<int64_t, double>>& points) {
  std::vector<std::pair<int64_t, double>> corners;
  for (const auto& point : points) {
    auto bent = [&] {
      const auto &a = corners[corners.size() - 2], &b = corners.back();
      const double slope = (a.second - b.second) / static_cast<double>(b.first - a.first);
      const double next = (b.second - point.second) / static_cast<double>(point.first - b.first);
      return slope > next + 1e-9;
    };
    while (corners.size() > 1 && !bent()) corners.pop_back();
    corners.push_back(point);
  }
  return corners;
}

const std::vector<GraphShape> frontier_shapes = {
    {.most_vertices = 6}, {.most_vertices = 6, .ties = true}, {.most_vertices = 6, .infinite = true}};

TEST(LimitedSearch, EqualsExhaustiveSearchUnderAnyLimit) {
  const Cases cases(200);
  for (int i = 0; i < cases.count; ++i) {
    SCOPED_TRACE("CORTADO_PLAN_SEED=" + std::to_string(cases.first + i) + " CORTADO_PLAN_CASES=1");
    for (const GraphShape& shape : frontier_shapes) {
      const CostGraph graph = random_graph(cases.first + i, shape);
      const std::vector<std::pair<int64_t, double>> points = exhaustive_frontier(graph);
      if (points.empty()) {
        EXPECT_THROW(search_within(graph, {100}), UserError);
        continue;
      }
      for (size_t p = 0; p < points.size(); ++p) {
        // Exactly as much as the point needs, and one byte less than the next one does.
        const int64_t more = p + 1 < points.size() ? points[p + 1].first - 1 : points[p].first + 1000;
        for (int64_t limit : {points[p].first, more}) {
          const LimitedOptimum found = search_within(graph, {limit});
          ASSERT_TRUE(found.fits);
          EXPECT_TRUE(found.proven);
          EXPECT_EQ(found.seconds.count, points[p].second);
          EXPECT_EQ(found.bytes, graph.bytes(found.assignment));
          EXPECT_LE(found.bytes.count, limit);
          EXPECT_EQ(found.gap().count, 0);
        }
      }
      const LimitedOptimum none = search_within(graph, {points[0].first - 1});
      EXPECT_FALSE(none.fits);
      EXPECT_EQ(none.bytes.count, points[0].first);
    }
  }
}

TEST(LimitedSearch, GivesWhatItHasWhenItMayNotLookAtEnough) {
  std::vector<std::pair<int, int>> edges;
  for (int v = 0; v + 1 < 40; ++v) edges.push_back({v, v + 1});
  const CostGraph graph = graph_of(3, 40, 12, edges);
  const std::vector<FrontierPoint> points = frontier(graph);
  const Bytes limit{(points[points.size() / 2].bytes.count + points[points.size() / 2 + 1].bytes.count) / 2};
  const LimitedOptimum proven = search_within(graph, limit);
  EXPECT_TRUE(proven.proven);
  const LimitedOptimum guess = search_within(graph, limit, {.most_points = 100});
  EXPECT_FALSE(guess.proven);
  EXPECT_TRUE(guess.fits);
  EXPECT_LE(guess.bytes, limit);
  EXPECT_LE(guess.lower_bound, proven.seconds);
  EXPECT_GE(guess.seconds, proven.seconds);
  EXPECT_GT(guess.gap().count, 0);
}

TEST(Frontier, HasTheCornersOfExhaustiveSearch) {
  const Cases cases(200);
  for (int i = 0; i < cases.count; ++i) {
    SCOPED_TRACE("CORTADO_PLAN_SEED=" + std::to_string(cases.first + i) + " CORTADO_PLAN_CASES=1");
    for (const GraphShape& shape : frontier_shapes) {
      const CostGraph graph = random_graph(cases.first + i, shape);
      const std::vector<std::pair<int64_t, double>> expected = corners_of(exhaustive_frontier(graph));
      if (expected.empty()) {
        EXPECT_THROW(frontier(graph), UserError);
        continue;
      }
      std::vector<std::pair<int64_t, double>> found;
      for (const FrontierPoint& point : frontier(graph)) {
        found.push_back({point.bytes.count, point.seconds});
        EXPECT_EQ(graph.bytes(point.assignment), point.bytes);
        EXPECT_NEAR(graph.seconds(point.assignment), point.seconds, 1e-10);
      }
      EXPECT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace cortado::plan
