#include "cortado/plan/memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cortado/layers/pooling.h"
#include "cortado/plan/planner.h"
#include "cortado/program/held_memory.h"
#include "cortado/program/lower.h"

#include "tests/plan/fake_costs.h"
#include "tests/program/nets.h"

namespace cortado::plan {
namespace {

// What the programs of a strategy hold on the fullest device.
Bytes held_by_programs(const Network& net, const NodeStrategies& strategies, int devices, int history) {
  Bytes most;
  for (int rank = 0; rank < devices; ++rank) {
    const Program program = lower(net, place(net, strategies, devices), testing::facts_of,
                                  {.keep_tensors = false, .rank = rank, .after_pass = {}});
    most = std::max(most, held_memory(program, net, history).total());
  }
  return most;
}

// What kernels keep beside tensors, and the padding of buffers and parameters, is not of the plan.
int64_t beside_tensors(const Network& net, int history) {
  return static_cast<int64_t>(net.nodes().size()) * 100 +
         static_cast<int64_t>(net.parameters().size()) * 64 * (2 + history);
}

TEST(Memory, BoundsWhatProgramsHold) {
  testing::FakeCosts costs;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Network net = testing::random_net(seed);
    for (int devices : {1, 2, 4}) {
      const int history = seed % 2 == 0 ? 1 : 2;  // momentum; Adam
      const PricingOptions pricing{.devices = devices, .history = history};
      const PlanGraph graph = make_plan_graph(net, pricing, costs, testing::one_node(devices));
      const CostGraph held = held_graph(graph);
      std::vector<Strategy> strategies;
      for (std::string_view name : built_in_strategies())
        strategies.push_back(built_in_strategy(name, net, devices));
      strategies.push_back(make_plan(net, pricing, costs, testing::one_node(devices)).strategy);
      for (size_t s = 0; s < strategies.size(); ++s) {
        SCOPED_TRACE(fmt::format("net {} on {} devices, strategy {}", seed, devices, s));
        const auto resolved = resolve(strategies[s], net, devices, "test");
        const std::vector<int> assignment = graph.assignment(net, strategies[s]);
        const Bytes peak = peak_bytes(graph, assignment);
        EXPECT_GE(peak.count + beside_tensors(net, history),
                  held_by_programs(net, resolved, devices, history).count);
        EXPECT_GE(peak, graph.costs.bytes(assignment));
        EXPECT_GE(static_cast<double>(peak.count), held.seconds(assignment));
        EXPECT_GE(held.seconds(assignment), static_cast<double>(graph.costs.bytes(assignment).count));
      }
    }
  }
}

Network deep_net() {
  SourceOptions data;
  data.kind = SourceOptions::Kind::input;
  data.shapes = {Shape{16, 3, 32, 32}, Shape{16, 10}};
  std::vector<LayerDeclaration> layers;
  layers.push_back(testing::declared("data", std::make_shared<Source>(data), {}, {"x", "y"}));
  std::string below = "x";
  for (int i = 0; i < 8; ++i) {
    ConvolutionOptions options;
    options.num_output = 16;
    options.kernel = {3};
    options.pad = {1};
    const std::string name = "conv" + std::to_string(i);
    layers.push_back(testing::declared(name, std::make_shared<Convolution>(options), {below}, {name}));
    layers.push_back(testing::declared("relu" + std::to_string(i), std::make_shared<Pointwise>(ReluOptions{}),
                                       {name}, {name}));
    below = name;
  }
  InnerProductOptions product;
  product.num_output = 10;
  layers.push_back(testing::declared("f", std::make_shared<InnerProduct>(product), {below}, {"f"}));
  layers.push_back(testing::declared("loss", std::make_shared<EuclideanLoss>(), {"f", "y"}, {"loss"}));
  return testing::built(layers);
}

// A bound that is far above would refuse what fits.
TEST(Memory, IsNotFarAboveWhatProgramsHold) {
  testing::FakeCosts costs;
  const Network net = deep_net();
  for (int devices : {1, 2, 4}) {
    const PlanGraph graph = make_plan_graph(net, {.devices = devices}, costs, testing::one_node(devices));
    for (const char* name : {"single", "data"}) {
      SCOPED_TRACE(std::string(name) + " on " + std::to_string(devices));
      const Strategy strategy = built_in_strategy(name, net, devices);
      const Bytes held = held_by_programs(net, resolve(strategy, net, devices, "test"), devices, 1);
      const Bytes peak = peak_bytes(graph, graph.assignment(net, strategy));
      EXPECT_LT(static_cast<double>(peak.count), 1.3 * static_cast<double>(held.count));
    }
  }
}

TEST(Memory, LimitsPlans) {
  testing::FakeCosts costs;
  const Network net = deep_net();
  const Plan free = make_plan(net, {.devices = 4}, costs, testing::one_node(4));
  const Plan asked = make_plan(net, {.devices = 4}, costs, testing::one_node(4), {.frontier_points = 2});
  const Bytes least = asked.frontier.front().memory;
  ASSERT_LT(least, free.memory);
  const Plan same = make_plan(net, {.devices = 4}, costs, testing::one_node(4), {.memory = free.memory});
  EXPECT_EQ(same.strategy, free.strategy);
  EXPECT_FALSE(same.limited);
  const Bytes limit{(least.count + free.memory.count) / 2};
  const Plan plan = make_plan(net, {.devices = 4}, costs, testing::one_node(4), {.memory = limit});
  EXPECT_TRUE(plan.limited);
  EXPECT_LE(plan.memory, limit);
  EXPECT_GT(plan.seconds, free.seconds);
  EXPECT_EQ(plan.unlimited, free.seconds);
  const auto strategies = resolve(plan.strategy, net, 4, "plan");
  EXPECT_LE(held_by_programs(net, strategies, 4, 1).count, limit.count + beside_tensors(net, 1));
  for (const Alternative& other : plan.runners_up) EXPECT_GE(other.adds.count, 0);
  const Bytes half{least.count / 2};
  EXPECT_TRUE(fits(net, {.devices = 4}, costs, testing::one_node(4), limit));
  EXPECT_FALSE(fits(net, {.devices = 4}, costs, testing::one_node(4), half));
  EXPECT_THROW(make_plan(net, {.devices = 4}, costs, testing::one_node(4), {.memory = half}), NothingFits);
}

TEST(Memory, FrontierFallsFromTheLeastMemoryToTheOptimum) {
  testing::FakeCosts costs;
  const Network net = deep_net();
  const Plan plan = make_plan(net, {.devices = 4}, costs, testing::one_node(4), {.frontier_points = 6});
  ASSERT_GE(plan.frontier.size(), 3u);
  EXPECT_LE(plan.frontier.size(), 7u);
  for (size_t i = 1; i < plan.frontier.size(); ++i) {
    EXPECT_GT(plan.frontier[i].memory, plan.frontier[i - 1].memory);
    EXPECT_LT(plan.frontier[i].seconds, plan.frontier[i - 1].seconds);
  }
  EXPECT_TRUE(plan.frontier.back().chosen);
  EXPECT_EQ(plan.frontier.back().seconds, plan.seconds);
}

}  // namespace
}  // namespace cortado::plan
