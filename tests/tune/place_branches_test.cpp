// Branches side by side: what is found in networks, how devices are divided, and the search.
#include "cortado/tune/place_branches.h"

#include <cmath>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "cortado/layers/concat.h"
#include "cortado/sim/step_seconds.h"
#include "cortado/tune/iteration_bound.h"
#include "cortado/tune/transposed_grids.h"
#include "cortado/tune/tune_on_machine.h"
#include "cortado/tune/tune_strategy.h"

#include "tests/plan/zoo.h"
#include "tests/program/nets.h"
#include "tests/sim/jobs.h"

namespace cortado {
namespace {

using ::testing::ElementsAre;
using testing::NetBuilder;

using Names = std::vector<std::string>;

std::string name_at(const Network& net, NodeIndex node) { return node ? net.nodes()[node].name : ""; }

std::vector<Names> branches_of(const Network& net, const BranchSet& set) {
  std::vector<Names> branches;
  for (const auto& branch : set.branches) {
    Names& names = branches.emplace_back();
    for (NodeIndex node : branch) names.push_back(net.nodes()[node].name);
  }
  return branches;
}

TEST(BranchSets, AreWhatPartsAndMeets) {
  const Network towers = testing::two_branches();
  const auto of_towers = branch_sets(towers);
  ASSERT_EQ(of_towers.size(), 1u);
  EXPECT_EQ(name_at(towers, of_towers[0].fork), "");
  EXPECT_EQ(name_at(towers, of_towers[0].join), "loss");
  EXPECT_THAT(branches_of(towers, of_towers[0]), ElementsAre(Names{"a1", "a2"}, Names{"b1", "b2"}));

  // A path without layers is no branch; branches inside of branches are sets, too.
  const Network nested = NetBuilder()
                             .conv("x", "data")
                             .conv("a", "x")
                             .conv("p", "a")
                             .conv("q", "a")
                             .sum("pq", {"p", "q"})
                             .conv("b", "x")
                             .sum("y", {"pq", "b", "x"})
                             .conv("c", "y")
                             .sum("z", {"c", "y"})
                             .loss("z", "data")
                             .build();
  const auto of_nested = branch_sets(nested);
  ASSERT_EQ(of_nested.size(), 2u);
  EXPECT_EQ(name_at(nested, of_nested[0].fork), "x");
  EXPECT_EQ(name_at(nested, of_nested[0].join), "y");
  EXPECT_THAT(branches_of(nested, of_nested[0]), ElementsAre(Names{"a", "p", "q", "pq"}, Names{"b"}));
  EXPECT_EQ(name_at(nested, of_nested[1].fork), "a");
  EXPECT_EQ(name_at(nested, of_nested[1].join), "pq");
  EXPECT_THAT(branches_of(nested, of_nested[1]), ElementsAre(Names{"p"}, Names{"q"}));

  const Network shared =
      NetBuilder().conv("a", "data", "one").conv("b", "data", "one").loss("a", "b").build();
  EXPECT_TRUE(branch_sets(shared).empty());
}

TEST(BranchSets, OfNetsOfTheZoo) {
  const auto count = [](const std::string& name, int64_t size) {
    return branch_sets(testing::zoo_net(name, 1, {3, size, size})).size();
  };
  EXPECT_EQ(count("inception-v3", 299), 15u);  // 11 blocks; in each of the last two, two branches part again
  EXPECT_EQ(count("resnet-18", 224), 3u);      // where the shortcut is a convolution
}

TEST(DeviceBlocks, FollowTheHierarchy) {
  const auto sizes = [](const DeviceGraph& machine, DeviceBlock whole, int most) {
    std::vector<std::vector<int>> all;
    for (const auto& division : divisions(machine, whole, most)) {
      int end = whole.first;
      std::vector<int>& one = all.emplace_back();
      for (const DeviceBlock& block : division) {
        EXPECT_EQ(block.first, end);
        end = block.end();
        one.push_back(block.count);
      }
      EXPECT_EQ(end, whole.end());
    }
    return all;
  };
  using Sizes = std::vector<int>;
  EXPECT_THAT(sizes(testing::machine_of(1, 4), {0, 4}, 4),
              ElementsAre(Sizes{2, 2}, Sizes{2, 1, 1}, Sizes{1, 1, 1, 1}));
  EXPECT_THAT(sizes(testing::machine_of(2, 3), {0, 6}, 3), ElementsAre(Sizes{3, 3}));
  EXPECT_THAT(sizes(testing::machine_of(2, 3), {0, 6}, 4), ElementsAre(Sizes{3, 3}, Sizes{3, 1, 1, 1}));
  EXPECT_THAT(sizes(testing::machine_of(3, 2), {0, 6}, 3), ElementsAre(Sizes{2, 2, 2}));
  EXPECT_THAT(sizes(testing::machine_of(1, 4), {2, 2}, 4), ElementsAre(Sizes{1, 1}));
  EXPECT_TRUE(divisions(testing::machine_of(1, 4), {0, 4}, 1).empty());
}

TEST(DeviceBlocks, AreInProportion) {
  using Blocks = std::vector<DeviceBlock>;
  EXPECT_EQ(in_proportion({0, 4}, {3, 1}), (Blocks{{0, 3}, {3, 1}}));
  EXPECT_EQ(in_proportion({4, 8}, {1, 6, 1}), (Blocks{{4, 1}, {5, 6}, {11, 1}}));
  EXPECT_EQ(in_proportion({0, 2}, {1000, 1}), (Blocks{{0, 1}, {1, 1}}));
  EXPECT_TRUE(in_proportion({0, 2}, {1, 1, 1}).empty());
}

// Devices on which each task takes a millisecond, however small it is, and messages nearly nothing.
DeviceGraph tasks_of_a_millisecond(int devices) {
  Node node;
  node.devices.assign(
      static_cast<size_t>(devices),
      Device{.name = "", .peak = {1e18}, .memory_bandwidth = {1e18}, .memory = {}, .task_overhead = {1e-3}});
  node.links = {{.group = devices, .link = {{1e-9}, {1e18}}}};
  Machine machine;
  machine.name = "tasks";
  machine.nodes = {node};
  return DeviceGraph(machine);
}

// By samples every device has every task: the first convolutions have no gradient of the data, so two passes
// each; the others three, the loss two. Side by side a device has the convolutions of one branch.
TEST(PlaceBranches, HalvesTheTasksOfTwoTowers) {
  const Network net = testing::two_branches();
  const DeviceGraph graph = tasks_of_a_millisecond(2);
  AbsentMachine machine(graph);
  for (const std::string name : {"data", "single"}) {
    SCOPED_TRACE(name);
    const PlacedStrategy found = place_on(machine.simulated(), net, built_in_strategy(name, net, 2), 1);
    EXPECT_NEAR(found.before.count, 1e-3 * (2 + 3 + 2 + 3 + 2), 1e-6);
    EXPECT_NEAR(found.seconds.count, 1e-3 * (2 + 3 + 2), 1e-6);
    ASSERT_EQ(found.sets.size(), 1u);
    EXPECT_EQ(found.all_sets, 1);
    const auto& devices = [&](const std::string& layer) {
      return found.strategy.find(layer)->config.devices;
    };
    EXPECT_EQ(devices("a1"), devices("a2"));
    EXPECT_EQ(devices("b1"), devices("b2"));
    EXPECT_NE(devices("a1"), devices("b1"));
    EXPECT_EQ(devices("a1").size(), 1u);
    EXPECT_EQ(simulated_seconds(net, machine.simulated())(found.strategy), found.seconds);
  }
  // Half of all twelve tasks; and of a path a1, a2, loss two, two and two passes.
  EXPECT_NEAR(least_iteration(net, machine.simulated()).count, 6e-3, 1e-6);
}

// Nets of one or two places where two or three branches of one or two convolutions part.
Network series_parallel(uint32_t seed, int places) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  NetBuilder builder;
  std::string from = "data";
  for (int place = 0; place < places; ++place) {
    Names ends;
    const int branches = places == 1 ? pick(2, 3) : 2;
    for (int b = 0; b < branches; ++b) {
      std::string end = from;
      for (int i = pick(1, 2); i > 0; --i) {
        const std::string name = fmt::format("p{}b{}l{}", place, b, i);
        ConvolutionOptions options;
        options.num_output = 4 * pick(1, 6);
        if (i == 1) options.num_output = 8;  // so that sums fit
        options.kernel = {pick(0, 1) == 0 ? 1 : 3};
        options.pad = {options.kernel[0] / 2};
        builder.declare(name, std::make_shared<Convolution>(options), {end}, {name});
        end = name;
      }
      ends.push_back(end);
    }
    from = fmt::format("join{}", place);
    if (pick(0, 1) == 0)
      builder.sum(from, ends);
    else
      builder.declare(from, std::make_shared<Concat>(ConcatOptions{}), ends, {from});
  }
  return builder.conv("last", from).loss("last", "data").build();
}

// What one device computes of these layers.
double seconds_on_one(const std::vector<NodeIndex>& layers, const Network& net, const DeviceGraph& graph) {
  const auto programs = testing::programs_of(net, built_in_strategy("single", net, 1), 1);
  AnalyticCosts costs(graph);
  const std::vector<int> nodes = graph.node_of_devices();
  StepSeconds seconds(programs[0], costs, nodes);
  double sum = 0;
  for (const Step& step : programs[0].steps) {
    NodeIndex layer;
    if (step.is<steps::Compute>()) layer = programs[0].works[step.work()].nodes[0];
    if (const auto* update = step.as<steps::Update>())
      layer = net.parameters()[update->parameter].declared_by;
    if (std::ranges::find(layers, layer) != layers.end()) sum += seconds.of(step).count;
  }
  return sum;
}

// The least of all places of all sets together.
Seconds least_of_all(const Strategy& start, const Network& net, const DeviceGraph& graph,
                     const std::function<Seconds(const Strategy&)>& seconds) {
  const DeviceBlock whole{0, graph.devices()};
  const auto sets = branch_sets(net);
  std::vector<Strategy> all{with_all_rules(start, net)};
  for (const BranchSet& set : sets) {
    std::vector<double> work;
    for (const auto& branch : set.branches) work.push_back(seconds_on_one(branch, net, graph));
    std::vector<Strategy> more = all;
    for (const Strategy& strategy : all)
      for (const BranchPlaces& places : places_of(set, graph, whole, work, true))
        more.push_back(placed(strategy, with_all_rules(start, net), net, set, places, whole));
    all = std::move(more);
  }
  Seconds least{std::numeric_limits<double>::infinity()};
  for (const Strategy& strategy : all) least = std::min(least, seconds(strategy));
  return least;
}

TEST(PlaceBranches, IsTheBestOfAllPlacesOfSmallNets) {
  int gained = 0;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    const int places = 1 + static_cast<int>(seed % 2);
    const DeviceGraph graph =
        seed % 4 == 0 ? testing::machine_of(2, 2) : testing::machine_of(1 + seed % 3 / 2, 2);
    const Network net = series_parallel(seed, graph.devices() > 2 ? 1 : places);
    AbsentMachine machine(graph);
    const auto seconds = simulated_seconds(net, machine.simulated());
    for (const std::string name : {"data", "single"}) {
      SCOPED_TRACE(fmt::format("seed {}, {}", seed, name));
      const Strategy start = built_in_strategy(name, net, graph.devices());
      const Seconds least = least_of_all(start, net, graph, seconds);
      const PlacedStrategy found = place_on(machine.simulated(), net, start, 1);
      EXPECT_NEAR(found.seconds.count, least.count, 1e-6 * least.count);
      EXPECT_LE(least_iteration(net, machine.simulated()).count, least.count * (1 + 1e-9));
      gained += found.seconds < found.before;
    }
  }
  EXPECT_GT(gained, 4);
}

TEST(TransposedGrids, ChangeTheOrderOfDevices) {
  InnerProductOptions options;
  options.num_output = 64;
  const auto product = std::make_shared<InnerProduct>(options);
  const Network net = NetBuilder()
                          .declare("a", product, {"data"}, {"a"})
                          .relu("a")
                          .declare("b", product, {"a"}, {"b"})
                          .loss("b", "b")
                          .build();
  Strategy start = with_all_rules(built_in_strategy("single", net, 6), net);
  start.rules[0].layer.config = {.degrees = {.c = 2, .r = 3}, .devices = {0, 1, 2, 3, 4, 5}, .weights = {}};
  const auto of_six = transposed_grids(start, net);
  ASSERT_EQ(of_six.size(), 1u);
  EXPECT_THAT(of_six[0].find("a")->config.devices, ElementsAre(0, 2, 4, 1, 3, 5));

  start = with_all_rules(built_in_strategy("single", net, 4), net);
  for (size_t rule : {0, 1, 2})
    start.rules[rule].layer.config = {.degrees = {.c = 2, .r = 2}, .devices = {0, 1, 2, 3}, .weights = {}};
  start.rules[1].layer.config.degrees = {.c = 4};
  const auto of_four = transposed_grids(start, net);
  ASSERT_EQ(of_four.size(), 2u);
  EXPECT_THAT(of_four[0].find("a")->config.devices, ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(of_four[0].rules[1].layer.config.devices, of_four[0].rules[0].layer.config.devices);
  EXPECT_EQ(of_four[0].find("b")->config, start.find("b")->config);
}

// Of inner products cut along c and r, one after the other: a device holds half of the channels that it
// reads if its grid is transposed; else two of four hold none of them.
TEST(TransposedGrids, AreFoundInChains) {
  SourceOptions source;
  source.kind = SourceOptions::Kind::input;
  source.shapes = {Shape{16, 1024}};
  InnerProductOptions options;
  options.num_output = 1024;
  const auto product = std::make_shared<InnerProduct>(options);
  const Network net = testing::built(
      {testing::declared("data", std::make_shared<Source>(source), {}, {"data"}),
       testing::declared("a", product, {"data"}, {"a"}), testing::declared("b", product, {"a"}, {"b"}),
       testing::declared("c", product, {"b"}, {"c"}),
       testing::declared("loss", std::make_shared<EuclideanLoss>(), {"c", "data"}, {"loss"})});
  Strategy start = with_all_rules(built_in_strategy("single", net, 4), net);
  for (size_t rule : {0, 1, 2})
    start.rules[rule].layer.config = {.degrees = {.c = 2, .r = 2}, .devices = {0, 1, 2, 3}, .weights = {}};
  const DeviceGraph graph = testing::ready_machine("layer-wise-p100", 4);
  AbsentMachine machine(graph);
  const PlacedStrategy found = place_on(machine.simulated(), net, start, 1);
  EXPECT_LT(found.seconds.count, 0.97 * found.before.count);
  EXPECT_EQ(found.all_sets, 0);
  EXPECT_EQ(found.strategy.find("a")->config.degrees, start.find("a")->config.degrees);
  EXPECT_EQ(found.seconds, simulated_seconds(net, machine.simulated())(found.strategy));
}

// Whatever is taken can be resolved and is simulated as it was found; nothing is searched without branches.
TEST(PlaceBranches, MakesValidStrategiesOfRandomNets) {
  int placed = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Network net = testing::random_net(seed);
    int tried = 0;
    const auto iteration = [&](const Strategy& strategy) {
      EXPECT_NO_THROW(resolve(strategy, net, 6, "placed")) << "seed " << seed;
      return Seconds{1.0 / ++tried};  // everything is taken
    };
    const auto devices = [&](const Strategy&) {
      DeviceParts idle;
      idle.nodes.resize(net.nodes().size());
      return std::vector(6, idle);
    };
    const PlacedStrategy found =
        place_branches(built_in_strategy("data", net, 6), net, testing::machine_of(2, 3),
                       {iteration, devices}, {.most_tried = 60});
    EXPECT_EQ(found.tried, tried);
    EXPECT_LE(found.tried, 60);
    EXPECT_EQ(found.all_sets, std::ssize(branch_sets(net)));
    EXPECT_EQ(found.tried == 1, found.all_sets == 0);
    placed += !found.sets.empty();
  }
  EXPECT_GT(placed, 0);
}

TEST(IterationBound, IsBelowRandomStrategies) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const DeviceGraph graph =
        testing::machine_of(1 + static_cast<int>(seed % 2), 1 + static_cast<int>(seed / 2 % 4));
    AbsentMachine machine(graph);
    const Network net = testing::random_net(seed);
    const Seconds bound = least_iteration(net, machine.simulated());
    const auto seconds = simulated_seconds(net, machine.simulated());
    EXPECT_GT(bound.count, 0);
    for (uint64_t other = 0; other < 4; ++other) {
      Strategy strategy = random_strategy(4 * seed + other, net, graph.devices());
      for (Strategy::Rule& rule : strategy.rules)
        rule.layer.config.weights.clear();  // may make any part small
      EXPECT_LE(bound.count, seconds(strategy).count * (1 + 1e-9)) << "seed " << seed;
    }
    for (std::string_view name : built_in_strategies())
      EXPECT_LE(bound.count, seconds(built_in_strategy(name, net, graph.devices())).count * (1 + 1e-9))
          << seed;
  }
}

}  // namespace
}  // namespace cortado
