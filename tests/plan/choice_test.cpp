#include "cortado/plan/choice.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "cortado/layers/inner_product.h"
#include "cortado/plan/strategy_seconds.h"

#include "tests/plan/fake_costs.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

using testing::FakeCosts;
using testing::one_node;

const plan::Assignment& fastest_built_in(const plan::Plan& plan) {
  const auto end = plan.baselines.end() - 1;  // best-of-each
  return *std::ranges::min_element(plan.baselines.begin(), end, {}, &plan::Assignment::seconds);
}

TEST(Choice, LeavesABuiltInStrategyForATenthAlone) {
  FakeCosts costs;
  int planned = 0, built_in = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    for (int devices : {2, 4}) {
      SCOPED_TRACE(std::to_string(seed) + " on " + std::to_string(devices));
      const Network net = testing::random_net(seed);
      const plan::Choice choice = plan::choose(net, {.devices = devices}, costs, one_node(devices), {});
      EXPECT_TRUE(choice.misfit.empty()) << choice.misfit;
      const plan::Assignment& best = fastest_built_in(choice.plan);
      const bool takes_plan = best.seconds.count > plan::clearly_less * choice.plan.seconds.count;
      const auto& first = choice.candidates[0];
      if (takes_plan) {
        ++planned;
        EXPECT_EQ(first.built_in, "");
        EXPECT_TRUE(first.strategy == choice.plan.strategy || first.strategy == spread(choice.plan.strategy));
        EXPECT_LE(first.seconds, choice.plan.seconds);
      } else {
        ++built_in;
        EXPECT_EQ(first.seconds, best.seconds);
        EXPECT_EQ(first.strategy, built_in_strategy(first.built_in, net, devices));
      }
      // Besides, built-in strategies about as fast as the best of them, each once.
      std::set<Seconds> rivals;
      for (const plan::Assignment& one : choice.plan.baselines)
        if (one.name != "best-of-each" && !is_opponent(one.name) &&
            one.seconds.count <= plan::worth_trying * best.seconds.count)
          rivals.insert(one.seconds);
      EXPECT_EQ(choice.candidates.size(), rivals.size() + (takes_plan ? 1 : 0));
    }
  }
  EXPECT_GT(planned, 5);
  EXPECT_GT(built_in, 5);
}

// Sums between the nodes of four devices take much longer.
class DearSums : public FakeCosts {
 public:
  Seconds collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) override {
    const bool across =
        std::ranges::any_of(groups, [](const auto& group) { return group.front() < 4 && group.back() >= 4; });
    return {(across ? 100 : 1) * FakeCosts::collective(kind, groups, bytes).count};
  }
};

// What few devices of two nodes do is done on both nodes where that costs less: it moves less, but gradients
// are summed between the nodes.
TEST(Choice, SpreadsLayersOnFewDevicesWhereThatCostsLess) {
  FakeCosts costs;
  DearSums dear;
  const std::vector<int> nodes{0, 0, 0, 0, 1, 1, 1, 1};
  const plan::PricingOptions pricing{.devices = 8, .dimensions = "n"};
  int taken = 0, left = 0;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    FakeCosts& model = seed % 2 == 0 ? costs : dear;
    const Network net = testing::random_net(seed / 2, Phase::train, seed / 2 % 2 == 0 ? 2 : 4);
    const plan::Choice choice = plan::choose(net, pricing, model, nodes, {});
    const plan::Choice::Candidate& planned = choice.candidates[0];
    if (!planned.built_in.empty()) continue;
    const Strategy other = spread(choice.plan.strategy);
    const Seconds seconds = plan::strategy_seconds(net, other, pricing, model, nodes);
    const bool less = seconds <= choice.plan.seconds;
    EXPECT_EQ(planned.strategy, less ? other : choice.plan.strategy);
    EXPECT_EQ(planned.seconds, less ? seconds : choice.plan.seconds);
    if (other != choice.plan.strategy) ++(less ? taken : left);
  }
  EXPECT_GT(taken, 0);
  EXPECT_GT(left, 0);
}

// A judge who says that half of what Eq. 1 adds up is hidden under one strategy decides for that one; what it
// finds too slow is kept aside.
TEST(Choice, FollowsTheJudge) {
  FakeCosts costs;
  int left_out = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = testing::random_net(seed);
    const Strategy data = built_in_strategy("data", net, 4);
    const plan::Judge judge = [&](const Strategy& strategy) { return Seconds{strategy == data ? 1.0 : 2.0}; };
    const plan::Choice choice = plan::choose(net, {.devices = 4}, costs, one_node(4), {}, judge);
    ASSERT_EQ(choice.candidates.size(), 1u);
    EXPECT_EQ(choice.candidates[0].strategy, data);
    EXPECT_EQ(choice.candidates[0].seconds.count, 1);
    for (const auto& other : choice.others) EXPECT_EQ(other.seconds.count, 2);
    for (const plan::Assignment& one : choice.plan.baselines) {
      const bool judged = one.name == "data" || std::ranges::any_of(choice.others, [&](const auto& other) {
                            return other.built_in == one.name;
                          });
      const bool dear = one.seconds.count > plan::at_most_hidden * choice.plan.seconds.count;
      EXPECT_FALSE(judged && dear && one.name != "data") << one.name;
      left_out += dear;
    }
  }
  EXPECT_GT(left_out, 5);
}

// Where the plan is judged to take nearly nothing, no built-in strategy can be worth trying.
TEST(Choice, AsksNothingThatCannotMatter) {
  const Network net = testing::two_branches();
  FakeCosts costs;
  std::vector<Strategy> asked;
  const plan::Judge judge = [&](const Strategy& strategy) {
    asked.push_back(strategy);
    return Seconds{1e-12};
  };
  plan::choose(net, {.devices = 4}, costs, one_node(4), {}, judge);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[1], built_in_strategy("data", net, 4));
}

// Whole gradients by every replica are judged, too.
TEST(Choice, JudgesReplicatedGradients) {
  FakeCosts costs;
  const LayerPtr product = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 144});
  const Network net =
      testing::NetBuilder().conv("a", "data").declare("b", product, {"a"}, {"b"}).loss("b", "data").build();
  const Strategy data = built_in_strategy("data", net, 2);
  const Strategy replicated = built_in_strategy("replicated", net, 2);
  // The convolution's weights are fewer than what it reads and writes.
  EXPECT_EQ(replicated.find("a")->sync, GradientSync::allreduce);
  EXPECT_EQ(replicated.find("b")->sync, GradientSync::replicate);
  const plan::Judge judge = [&](const Strategy& strategy) {
    return Seconds{strategy == replicated ? 1.0 : 2.0};
  };
  const plan::Choice choice = plan::choose(net, {.devices = 2}, costs, one_node(2), {}, judge);
  ASSERT_EQ(choice.candidates.size(), 1u);
  EXPECT_EQ(choice.candidates[0].built_in, "replicated");
  EXPECT_EQ(choice.candidates[0].strategy, replicated);
  EXPECT_TRUE(std::ranges::any_of(choice.others, [](const auto& other) { return other.built_in == "data"; }));
  // Not where devices round otherwise, though the judge would have it.
  const plan::Choice unlike =
      plan::choose(net, {.devices = 2, .replicate = false}, costs, one_node(2), {}, judge);
  for (const auto* list : {&unlike.candidates, &unlike.others}) {
    for (const auto& candidate : *list)
      EXPECT_EQ(candidate.strategy.find("b")->sync, GradientSync::allreduce) << candidate.built_in;
  }
}

// With a little less memory than a choice holds another one is made that holds less.
TEST(Choice, KeepsToTheMemory) {
  FakeCosts costs;
  int others = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = testing::random_net(seed);
    const auto choose = [&](Bytes memory) {
      return plan::choose(net, {.devices = 3}, costs, one_node(3), memory);
    };
    const auto memory_of = [](const plan::Choice& choice) {
      const std::string& name = choice.candidates[0].built_in;
      if (name.empty()) return choice.plan.memory;
      return std::ranges::find(choice.plan.baselines, name, &plan::Assignment::name)->memory;
    };
    const plan::Choice free = choose({});
    const Bytes limit{memory_of(free).count - 1};
    const plan::Choice held = choose(limit);
    if (held.misfit.empty()) {
      ++others;
      EXPECT_LE(memory_of(held), limit);
      EXPECT_NE(held.candidates[0].strategy, free.candidates[0].strategy);
    } else {
      EXPECT_EQ(held.candidates[0].strategy, free.candidates[0].strategy);
    }
    EXPECT_FALSE(choose({1}).misfit.empty());
    EXPECT_EQ(choose({1}).candidates[0].strategy, free.candidates[0].strategy);
  }
  EXPECT_GT(others, 5);
}

}  // namespace
}  // namespace cortado
