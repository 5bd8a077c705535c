// Plans of whole nets: what the planner shares and leaves out to be fast changes nothing.
#include "tests/plan/zoo.h"

#include <gtest/gtest.h>

#include "cortado/parallel/config_fit.h"
#include "cortado/parallel/layer_cut.h"
#include "cortado/plan/layer_grid.h"
#include "cortado/plan/plan_on_machine.h"
#include "cortado/plan/search.h"
#include "cortado/plan/strategy_seconds.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

using plan::PlanGraph;

// All layouts of a group's layers, made at once, are those of boxes made one by one.
void expect_layouts(const Network& network, const plan::Group& group, int devices) {
  const std::vector<ParallelConfig> configs = plan::candidates_of(network, group, devices);
  for (size_t i = 0; i < group.nodes.size(); ++i) {
    const auto& node = network.nodes()[group.nodes[i]];
    const auto inputs = network.shapes_of(node.inputs), outputs = network.shapes_of(node.outputs);
    plan::LayerGrid grid(*node.layer, inputs, outputs, devices);
    for (const ParallelConfig& first : configs) {
      const ParallelConfig config = i == 0 ? first : plan::following(first);
      SCOPED_TRACE(node.name + " " + config.text());
      ASSERT_NO_THROW(check_config(config, *node.layer, inputs, outputs, devices));
      const LayerCut cut = cut_layer(*node.layer, inputs, outputs, config, devices);
      ASSERT_EQ(grid.domain(config), GridLayout(cut.domain));
      for (size_t k = 0; k < inputs.size(); ++k)
        ASSERT_EQ(grid.reads(static_cast<int>(k), config), GridLayout(cut.reads[k]));
      for (size_t k = 0; k < outputs.size(); ++k) {
        ASSERT_EQ(grid.computes(static_cast<int>(k), config), GridLayout(cut.computes[k]));
        ASSERT_EQ(grid.owns(static_cast<int>(k), config), GridLayout(cut.owns[k]));
        ASSERT_TRUE(GridLayout(cut.owns[k]).is_grid());
      }
      for (size_t p = 0; p < cut.slices.size(); ++p)
        ASSERT_EQ(grid.slices(static_cast<int>(p), config), GridLayout(cut.slices[p]));
    }
  }
}

TEST(LayerGrid, HasTheBoxesOfEveryDevice) {
  const Network nets[] = {testing::zoo_net("lenet", 12, {1, 28, 28}),
                          testing::zoo_net("alexnet", 12, {3, 224, 224}),
                          testing::zoo_net("inception-v3", 12, {3, 299, 299}),
                          testing::zoo_net("u-net", 12, {1, 64, 64}, {64, 64}),
                          testing::zoo_net("u-net-3d", 12, {1, 32, 32, 32}, {32, 32, 32})};
  for (const Network& network : nets) {
    for (int devices : {4, 6}) {
      for (const plan::Group& group : plan::groups_of(network)) {
        ASSERT_NO_FATAL_FAILURE(expect_layouts(network, group, devices))
            << network.name() << " on " << devices;
      }
    }
  }
}

// Groups that are alike are priced once, edges of equal layouts too, and a table by products of axes.
TEST(PlanGraph, CostsWhatEachGroupAndEdgeCostsByItself) {
  const DeviceGraph machine = testing::ready_machine("lassen", 6);
  const std::vector<int> nodes = machine.node_of_devices();
  AnalyticCosts costs(machine);
  const Network network = testing::zoo_net("inception-v3", 12, {3, 299, 299});
  const plan::PricingOptions options{.devices = 6};
  const PlanGraph graph = plan::make_plan_graph(network, options, costs, nodes);
  for (size_t v = 0; v < graph.groups.size(); ++v) {
    for (size_t c = 0; c < graph.candidates[v].size(); ++c) {
      const plan::Priced& priced = graph.candidates[v][c];
      const plan::Priced alone = plan::price(network, graph.groups[v], priced.strategy, options, costs);
      ASSERT_EQ(priced.total().count, alone.total().count);
      ASSERT_EQ(priced.memory, alone.memory);
      ASSERT_EQ(priced.sync_bytes + priced.sums_bytes, alone.sync_bytes + alone.sums_bytes);
      ASSERT_EQ(graph.costs.vertices()[v].seconds[c], alone.total().count);
    }
  }
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    const PlanGraph::Edge& edge = graph.edges[e];
    const auto &from = graph.candidates[static_cast<size_t>(edge.from)],
               &to = graph.candidates[static_cast<size_t>(edge.to)];
    for (size_t a = e % 3; a < from.size(); a += 3) {
      for (size_t b = 0; b < to.size(); ++b) {
        const double once =
            costs.exchange(exchange_volume(from[a].owns[edge.output], to[b].reads[edge.input], nodes)).count;
        ASSERT_EQ((*graph.costs.edges()[e].seconds)[a * to.size() + b], edge.backward ? 2 * once : once);
      }
    }
  }
}

// Bit for bit, whatever is taken out first.
TEST(PlanGraph, HasOneOptimumPrunedOrNot) {
  const std::pair<const char*, std::vector<int64_t>> nets[] = {
      {"alexnet", {3, 224, 224}}, {"inception-v3", {3, 299, 299}}, {"densenet-121", {3, 224, 224}}};
  for (const auto& [name, sample] : nets) {
    const DeviceGraph machine = testing::ready_machine("layer-wise-p100", 8);
    AnalyticCosts costs(machine);
    const Network network = testing::zoo_net(name, 64, sample);
    const PlanGraph graph = plan::make_plan_graph(network, {.devices = 8}, costs, machine.node_of_devices());
    const plan::Optimum all = plan::search(graph.costs, {.prune = plan::PruneFirst::never});
    const plan::Optimum fewer = plan::search(graph.costs, {.prune = plan::PruneFirst::always});
    EXPECT_EQ(all.seconds, fewer.seconds) << name;
    EXPECT_EQ(all.statistics.dominated, 0);
    EXPECT_GT(fewer.statistics.dominated + fewer.statistics.identical, 0);
    EXPECT_EQ(plan::search(graph.costs).seconds, all.seconds) << name;
  }
}

// Each block of 128 devices does what the first one does.
TEST(PlanOnMachine, TakesNoLongerThanAPartOfALargeMachineRepeated) {
  const auto with_batch = [](int64_t batch) { return testing::zoo_net("alexnet", batch, {3, 224, 224}); };
  const Network network = with_batch(512);
  const plan::PlanRequest request{.network = network, .batch = 512, .with_batch = with_batch};
  const DeviceGraph machine = testing::ready_machine("lassen", 512);
  const plan::PricingOptions pricing = plan::pricing_of(request, machine, 512);
  ASSERT_EQ(pricing.good.size(), 1u);
  EXPECT_EQ(pricing.good[0].ranks, 512);
  for (const Strategy::Rule& rule : pricing.good[0].rules) {
    EXPECT_EQ(rule.layer.config.degrees.product(), std::ssize(rule.layer.config.devices));
    EXPECT_EQ(rule.layer.config.degrees.n % 4, 0) << rule.pattern;
  }
  AnalyticCosts costs(machine);
  const double repeated =
      plan::strategy_seconds(network, pricing.good[0], pricing, costs, machine.node_of_devices()).count;
  EXPECT_LE(plan::plan_on_machine(request, machine, 512).seconds.count, repeated * (1 + 1e-9));
  EXPECT_TRUE(plan::pricing_of(request, machine.first(256), 512).good.empty());
  EXPECT_TRUE(plan::pricing_of(request, machine, 511).good.empty());  // no part has whole samples
}

}  // namespace
}  // namespace cortado
