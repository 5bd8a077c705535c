#include "cortado/plan/cheapest.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>

#include "cortado/plan/exhaustive.h"
#include "cortado/plan/remedy.h"
#include "cortado/plan/tradeoff.h"

#include "tests/plan/graphs.h"

namespace cortado::plan {
namespace {

using PeakOf = std::function<Bytes(const std::vector<int>&)>;

// The least seconds of all assignments whose peak is within the limit, and the least peak of all.
struct Exhaustive {
  double seconds = std::numeric_limits<double>::infinity();
  Bytes least{std::numeric_limits<int64_t>::max()};
};
Exhaustive exhaustive_within(const CostGraph& graph, const PeakOf& peak, Bytes limit) {
  Exhaustive result;
  for_each_assignment(graph, 1'000'000, [&](const std::vector<int>& assignment, double seconds) {
    const Bytes memory = peak(assignment);
    result.least = std::min(result.least, memory);
    if (seconds < result.seconds && memory <= limit) result.seconds = seconds;
  });
  return result;
}

// The bytes of vertices in place of seconds, and of edges some in every third pair.
CostGraph held_by(const CostGraph& graph, double of_edges) {
  CostGraph held;
  for (const CostGraph::Vertex& vertex : graph.vertices()) {
    std::vector<double> bytes;
    for (const Bytes& each : vertex.bytes) bytes.push_back(static_cast<double>(each.count));
    held.add_vertex(vertex.name, std::move(bytes));
  }
  for (const CostGraph::Edge& edge : graph.edges()) {
    std::vector<double> bytes(edge.seconds->size());
    for (size_t i = 0; i < bytes.size(); i += 3) bytes[i] = of_edges;
    held.add_edge(edge.from, edge.to, std::move(bytes));
  }
  return held;
}

std::function<const CostGraph&()> given(const CostGraph& held) {
  return [&held]() -> const CostGraph& { return held; };
}

const GraphShape shape{.most_vertices = 6, .most_candidates = 4};

TEST(Cheapest, EqualsExhaustiveSearchWhereVerticesHoldAll) {
  const Cases cases(60);
  for (int i = 0; i < cases.count; ++i) {
    SCOPED_TRACE("CORTADO_PLAN_SEED=" + std::to_string(cases.first + i) + " CORTADO_PLAN_CASES=1");
    const CostGraph graph = random_graph(cases.first + i, shape);
    const CostGraph held = held_by(graph, 0);
    const PeakOf sum = [&](const std::vector<int>& assignment) { return graph.bytes(assignment); };
    const Cheapest free = cheapest_within({graph, given(held), sum, {0}});
    EXPECT_FALSE(free.limited);
    EXPECT_EQ(free.seconds.count, exhaustive_search(graph).seconds);
    const Bytes least = exhaustive_within(graph, sum, {0}).least;
    for (const int64_t quarter : {0, 1, 2, 3, 4}) {
      const Bytes limit{least.count + (free.memory.count - least.count) * quarter / 4};
      const Cheapest found = cheapest_within({graph, given(held), sum, limit});
      EXPECT_TRUE(found.proven);
      EXPECT_LE(found.memory, limit);
      EXPECT_EQ(found.limited, free.memory > limit);
      EXPECT_EQ(found.seconds.count, exhaustive_within(graph, sum, limit).seconds);
      EXPECT_EQ(found.unlimited, free.seconds);
    }
    EXPECT_THROW(cheapest_within({graph, given(held), sum, {least.count - 1}}), NothingFits);
  }
}

// Edges hold bytes, and more passes at some time, so that the vertices alone do not tell what fits.
TEST(Cheapest, WhatItFindsFitsAndTheBoundIsOneWhereEdgesHoldBytes) {
  const Cases cases(60);
  int limited = 0, missed = 0, proven = 0;
  for (int i = 0; i < cases.count; ++i) {
    SCOPED_TRACE("CORTADO_PLAN_SEED=" + std::to_string(cases.first + i) + " CORTADO_PLAN_CASES=1");
    const CostGraph graph = random_graph(cases.first + i, shape);
    const CostGraph held = held_by(graph, 25);
    const PeakOf peak = [&](const std::vector<int>& assignment) {
      return Bytes{static_cast<int64_t>(held.seconds(assignment)) + 5 * (assignment[0] % 3)};
    };
    const Bytes least = exhaustive_within(graph, peak, {0}).least;
    const Bytes most = cheapest_within({graph, given(held), peak, {0}}).memory;
    for (int64_t limit = least.count + 10; limit < most.count; limit += 20) {
      const double best = exhaustive_within(graph, peak, {limit}).seconds;
      ++limited;
      try {
        const Cheapest found = cheapest_within({graph, given(held), peak, {limit}});
        EXPECT_LE(found.memory.count, limit);
        EXPECT_EQ(found.memory, peak(found.assignment));
        EXPECT_LE(found.lower_bound.count, best);
        EXPECT_GE(found.seconds.count, best - 1e-9);
        EXPECT_LE(found.seconds.count, found.proven ? best + 1e-9 : found.seconds.count);
        proven += found.proven;
        missed += found.seconds.count > 1.25 * best;
      } catch (const NothingFits&) {
        ADD_FAILURE() << "something fits in " << limit;
      }
    }
  }
  EXPECT_GT(limited, 50);
  EXPECT_LT(proven, limited) << "the cases are to go beyond the exact search";
  EXPECT_LT(missed, limited / 5) << "of " << limited;
}

TEST(Cheapest, AsksForHeldBytesOnlyWhereTheCheapestDoesNotFit) {
  const CostGraph graph = random_graph(3, shape);
  const CostGraph held = held_by(graph, 25);
  int asked = 0;
  const auto counted = [&]() -> const CostGraph& {
    ++asked;
    return held;
  };
  const PeakOf peak = [&](const std::vector<int>& assignment) {
    return Bytes{static_cast<int64_t>(held.seconds(assignment))};
  };
  const Cheapest free = cheapest_within({graph, counted, peak, {0}});
  cheapest_within({graph, counted, peak, free.memory});
  EXPECT_EQ(asked, 0);
  EXPECT_THROW(cheapest_within({graph, counted, peak, {1}}), NothingFits);
  EXPECT_GT(asked, 0);
}

TEST(Cheapest, TellsWhatWouldBeNeeded) {
  const CostGraph graph = random_graph(3, shape);
  const CostGraph held = held_by(graph, 0);
  const PeakOf peak = [&](const std::vector<int>& assignment) {
    return graph.bytes(assignment) + Bytes{int64_t{3} << 30};
  };
  const Bytes limit{int64_t{2} << 30};
  try {
    cheapest_within({graph, given(held), peak, limit});
    FAIL();
  } catch (const NothingFits& error) {
    EXPECT_EQ(error.needs(), exhaustive_within(graph, peak, limit).least);
    EXPECT_STREQ(error.what(), "needs 3.00 GiB on a device that has 2.00 GiB");
  }
}

TEST(Tradeoffs, CornersLieBelowAllAssignments) {
  for (uint64_t seed = 1; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const CostGraph graph = random_graph(seed, shape), held = held_by(graph, 25);
    const auto corners = Tradeoffs(graph, held).corners(5);
    ASSERT_LE(corners.size(), 5u);
    EXPECT_EQ(corners.back().seconds, graph.seconds(search(graph).assignment));
    for (size_t i = 1; i < corners.size(); ++i) {
      if (!is_tradeoff(corners[i - 1], corners[i])) continue;
      // Both minimize seconds + multiplier * bytes for the multipliers beside them.
      const double multiplier = multiplier_between(corners[i - 1], corners[i]);
      const double line = corners[i].seconds + multiplier * corners[i].bytes;
      if (corners.size() == 5) continue;  // there may be corners between
      for_each_assignment(graph, 1'000'000, [&](const std::vector<int>& assignment, double seconds) {
        EXPECT_GE(seconds + multiplier * held.seconds(assignment), line * (1 - 1e-9));
      });
    }
  }
}

// A device needs 10 for itself and 4 for each of its samples.
Fits fits_in(int64_t limit) {
  return [limit](int devices, int64_t batch) { return 10 + 4 * ((batch + devices - 1) / devices) <= limit; };
}

TEST(Remedy, FindsTheFewestDevicesAndTheLargestBatch) {
  EXPECT_EQ(text_of(find_remedy(fits_in(80), 2, 16, 64), 16), "it fits on 4 devices, or with a batch of 34");
  EXPECT_EQ(text_of(find_remedy(fits_in(80), 1, 3, 64), 3), "it fits with a batch of 17");
  EXPECT_EQ(text_of(find_remedy(fits_in(80), 3, 8, 64), 8), "it fits on 4 devices, or with a batch of 51");
  EXPECT_EQ(text_of(find_remedy(fits_in(14), 4, 256, 64), 256),
            "it fits on 64 devices, or with a batch of 4");
  EXPECT_EQ(text_of(find_remedy(fits_in(13), 4, 256, 64), 256),
            "it fits neither on all 256 devices of the machine nor with a smaller batch");
}

TEST(Remedy, PassesOverWhatANetDoesNotAllow) {
  const auto fits = [](int devices, int64_t batch) {
    if (batch != 64) throw UserError("this net has a batch of 64");
    return fits_in(80)(devices, batch);
  };
  EXPECT_EQ(text_of(find_remedy(fits, 2, 16, 64), 16), "it fits on 4 devices");
}

}  // namespace
}  // namespace cortado::plan
