#include "cortado/sim/flows.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace cortado {
namespace {

// The end of each flow, all of which start at once.
std::vector<double> ends(int ports, const std::vector<std::pair<double, std::vector<Flows::Load>>>& all) {
  Flows flows(ports);
  for (const auto& [seconds, loads] : all) flows.start(seconds, loads);
  std::vector<double> ends(all.size());
  double now = 0;
  while (!flows.idle()) {
    const double step = flows.next_end();
    now += step;
    for (int number : flows.advance(step)) ends[static_cast<size_t>(number)] = now;
  }
  return ends;
}

TEST(Flows, OneAloneTakesItsTime) { EXPECT_EQ(ends(1, {{3, {{0, 1}}}}), std::vector<double>{3}); }

TEST(Flows, TwoHalveAPortAndTheLongerOneHasItAloneThen) {
  EXPECT_EQ(ends(1, {{1, {{0, 1}}}, {3, {{0, 1}}}}), (std::vector<double>{2, 4}));
}

TEST(Flows, ThoseThatFitDoNotSlowDown) {
  EXPECT_EQ(ends(1, {{2, {{0, 0.5}}}, {3, {{0, 0.5}}}}), (std::vector<double>{2, 3}));
}

TEST(Flows, EndsThatAreApartStayApart) {
  const std::vector<double> found = ends(2, {{1, {{0, 1}}}, {1.000001, {{1, 1}}}});
  EXPECT_NEAR(found[0], 1, 1e-8);
  EXPECT_NEAR(found[1], 1.000001, 1e-8);
}

TEST(Flows, TellHowMuchOfThemIsDone) {
  Flows flows(1);
  const int first = flows.start(1, {{0, 1}}), second = flows.start(3, {{0, 1}});
  EXPECT_EQ(flows.done(first), 0);
  flows.advance(1);
  EXPECT_NEAR(flows.done(first), 0.5, 1e-12);
  EXPECT_NEAR(flows.done(second), 1.0 / 6, 1e-12);
  EXPECT_EQ(flows.advance(1), std::vector{first});
  EXPECT_NEAR(flows.done(second), 1.0 / 3, 1e-12);
  flows.next_end();
  flows.advance(1);
  EXPECT_NEAR(flows.done(second), 2.0 / 3, 1e-12);
}

TEST(Flows, TellWhetherPortsAreBusyWithWhatIsNeededLater) {
  Flows flows(3);
  flows.start(1, {{0, 0.5}, {1, 1}}, 2);
  EXPECT_TRUE(flows.later_use({{1, 1}}, 1));
  EXPECT_TRUE(flows.later_use({{2, 1}, {0, 1}}, 1));
  EXPECT_FALSE(flows.later_use({{1, 1}}, 2));
  EXPECT_FALSE(flows.later_use({{2, 1}}, 1));
  flows.advance(flows.next_end());
  EXPECT_FALSE(flows.later_use({{1, 1}}, 1));
}

TEST(Flows, WhatIsNeededSoonerGoesFirst) {
  Flows flows(2);
  const int late = flows.start(3, {{0, 1}}, 2), soon = flows.start(1, {{0, 0.75}}, 1),
            elsewhere = flows.start(4, {{1, 1}}, 3);
  EXPECT_EQ(flows.speed(soon), 1);
  EXPECT_NEAR(flows.speed(late), 0.25, 1e-12);
  EXPECT_EQ(flows.speed(elsewhere), 1);
  EXPECT_EQ(flows.advance(flows.next_end()), std::vector{soon});
  EXPECT_EQ(flows.speed(late), 1);
  EXPECT_NEAR(flows.next_end(), 2.75, 1e-12);
  // All of the port for one that is needed at once: others stand still, and go on after it.
  const int now = flows.start(1, {{0, 1}}, 0);
  EXPECT_EQ(flows.speed(late), 0);
  EXPECT_EQ(flows.advance(flows.next_end()), std::vector{now});
  EXPECT_EQ(flows.speed(late), 1);
}

// Two flows share port 0, one of them goes on through port 1, which has a third one: that gets all the second
// one leaves.
TEST(Flows, SharesAreMaxMinFair) {
  const std::vector<double> found =
      ends(2, {{1, {{0, 1}}}, {1, {{0, 1}}}, {1, {{0, 1}, {1, 1}}}, {1, {{1, 1}}}});
  EXPECT_NEAR(found[3], 1.5, 1e-9);  // 1 / (2/3)
  for (int i : {0, 1, 2}) EXPECT_NEAR(found[static_cast<size_t>(i)], 3, 1e-9);
}

// No port gives more than it has, and a flow below full speed uses a full one on which nobody is faster.
TEST(Flows, RandomOnesAreMaxMinFair) {
  std::mt19937 random(7);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 200; ++round) {
    const int ports = pick(1, 6), count = pick(1, 12);
    Flows flows(ports);
    std::vector<std::vector<Flows::Load>> loads;
    for (int i = 0; i < count; ++i) {
      std::map<int, double> shares;
      for (int k = pick(1, 3); k > 0; --k) shares[pick(0, ports - 1)] = pick(1, 10) / 10.0;
      std::vector<Flows::Load> of_flow;
      for (const auto& [port, share] : shares) of_flow.push_back({port, share});
      flows.start(1e6, of_flow);
      loads.push_back(std::move(of_flow));
    }
    std::vector<double> used(static_cast<size_t>(ports)), fastest(static_cast<size_t>(ports));
    for (int i = 0; i < count; ++i) {
      for (const auto& load : loads[static_cast<size_t>(i)]) {
        used[static_cast<size_t>(load.port)] += load.share * flows.speed(i);
        fastest[static_cast<size_t>(load.port)] =
            std::max(fastest[static_cast<size_t>(load.port)], flows.speed(i));
      }
    }
    for (double all : used) EXPECT_LE(all, 1 + 1e-9);
    for (int i = 0; i < count; ++i) {
      if (flows.speed(i) > 1 - 1e-9) continue;
      EXPECT_TRUE(std::ranges::any_of(loads[static_cast<size_t>(i)],
                                      [&](const Flows::Load& load) {
                                        const auto port = static_cast<size_t>(load.port);
                                        return used[port] > 1 - 1e-9 && flows.speed(i) > fastest[port] - 1e-9;
                                      }))
          << "flow " << i << " of round " << round;
    }
  }
}

}  // namespace
}  // namespace cortado
