#include <gtest/gtest.h>

#include "cortado/cost/analytic.h"
#include "cortado/layers/convolution.h"
#include "cortado/plan/exhaustive.h"
#include "cortado/plan/plan_graph.h"
#include "cortado/plan/planner.h"
#include "cortado/program/lower.h"
#include "cortado/program/verify.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

// Devices of one node that compute and read memory as `rates` say, joined by links that cost hardly anything.
DeviceGraph devices_of(const std::vector<double>& rates) {
  Node node;
  for (double rate : rates)
    node.devices.push_back(
        {.peak = {rate * 1e9}, .memory_bandwidth = {rate * 1e8}, .memory = {int64_t{1} << 30}});
  if (rates.size() > 1) node.links = {{.group = static_cast<int>(rates.size()), .link = {{1e-9}, {1e12}}}};
  return DeviceGraph({.name = "unequal", .nodes = {node}});
}

TEST(UnequalDevices, PlansAreOptimalAndRun) {
  const DeviceGraph machine = devices_of({1, 3});
  const plan::PricingOptions pricing = plan::pricing_for(machine);
  AnalyticCosts costs(machine);
  int compared = 0, weighed = 0;
  for (uint32_t seed = 0; seed < 600 && compared < 15; ++seed) {
    const Network net = testing::random_net(seed);
    const plan::PlanGraph graph = plan::make_plan_graph(net, pricing, costs, machine.node_of_devices());
    double all = 1;
    for (int v = 0; v < graph.costs.size(); ++v) all *= graph.costs.candidates(v);
    if (all > 1e6) continue;
    ++compared;
    SCOPED_TRACE(seed);
    const plan::Plan plan = plan::make_plan(net, pricing, costs, machine.node_of_devices());
    EXPECT_DOUBLE_EQ(plan.seconds.count, plan::exhaustive_search(graph.costs).seconds);
    for (const plan::PlannedGroup& group : plan.groups) weighed += !group.strategy.config.weights.empty();
    std::vector<Program> programs;
    const NodeStrategies strategies = resolve(plan.strategy, net, 2, "the plan");
    for (int rank = 0; rank < 2; ++rank)
      programs.push_back(lower(net, place(net, strategies, 2), testing::facts_of,
                               {.keep_tensors = false, .rank = rank, .after_pass = {}}));
    EXPECT_NO_THROW(verify_job(programs));
    EXPECT_EQ(parse_strategy(strategy_text(plan.strategy), "again"), plan.strategy);
  }
  EXPECT_EQ(compared, 15);
  EXPECT_GT(weighed, 15);
}

// 3:1 of 1200 samples are done in three quarters of what the fast device takes alone; half of them take the
// slow one 1.5 times as long as that. (Of small layers the parts are not exact.)
TEST(UnequalDevices, ShareALayerSoThatBothEndTogether) {
  SourceOptions data;
  data.kind = SourceOptions::Kind::input;
  data.shapes = {Shape{1200, 4, 6, 6}};
  ConvolutionOptions options;
  options.num_output = 8;
  options.kernel = {3};
  options.pad = {1};
  std::vector<LayerDeclaration> layers;
  layers.push_back(testing::declared("data", std::make_shared<Source>(data), {}, {"x"}));
  layers.push_back(testing::declared("a", std::make_shared<Convolution>(options), {"x"}, {"a"}));
  const Network net = testing::built(layers);
  auto compute = [&](const std::vector<double>& rates) {
    const DeviceGraph machine = devices_of(rates);
    AnalyticCosts costs(machine);
    const plan::Plan plan =
        plan::make_plan(net, plan::pricing_for(machine, "n"), costs, machine.node_of_devices());
    const auto& data_parallel = *std::ranges::find(plan.baselines, "data", &plan::Assignment::name);
    return std::pair(plan.groups[0].compute.total().count, data_parallel.groups[0].compute.total().count);
  };
  const double alone = compute({3}).first;
  const auto [planned, equal] = compute({1, 3});
  EXPECT_NEAR(planned, 0.75 * alone, 1e-3 * alone);
  EXPECT_NEAR(equal, 1.5 * alone, 1e-3 * alone);
}

}  // namespace
}  // namespace cortado
