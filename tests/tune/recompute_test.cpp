// The layers that are computed again under a limit of memory.
#include "cortado/tune/recompute.h"

#include <cmath>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "cortado/base/error.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/pooling.h"
#include "cortado/program/held_memory.h"

#include "tests/plan/zoo.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

// Convolutions and poolings of unlike sizes, one after the other.
Network random_chain(uint32_t seed, int layers) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  SourceOptions source;
  source.kind = SourceOptions::Kind::input;
  source.shapes = {Shape{4, 8, 24, 24}};
  std::vector<LayerDeclaration> declarations{
      testing::declared("data", std::make_shared<Source>(source), {}, {"data"})};
  std::string before = "data";
  for (int i = 0; i < layers; ++i) {
    const std::string name = "x" + std::to_string(i);
    LayerPtr layer;
    if (pick(0, 3) == 0 && i > 0 && i < 4) {
      PoolingOptions pooling;
      pooling.kernel = {2};
      pooling.stride = {2};
      layer = std::make_shared<Pooling>(pooling);
    } else {
      ConvolutionOptions convolution;
      convolution.num_output = 8 * pick(1, 4);
      convolution.kernel = {3};
      convolution.pad = {1};
      layer = std::make_shared<Convolution>(convolution);
    }
    declarations.push_back(testing::declared(name, layer, {before}, {name}));
    before = name;
  }
  InnerProductOptions product;
  product.num_output = 3;
  declarations.push_back(
      testing::declared("product", std::make_shared<InnerProduct>(product), {before}, {"product"}));
  declarations.push_back(
      testing::declared("loss", std::make_shared<EuclideanLoss>(), {"product", "product"}, {"loss"}));
  return testing::built(declarations);
}

struct Point {
  Bytes memory;
  Seconds added;
};

// What a rank holds and computes again with these layers.
Point point_of(const Network& net, const IndexedVector<NodeIndex, bool>& again, AbsentMachine& machine) {
  Strategy strategy = built_in_strategy("single", net, 1);
  set_recompute(strategy, net, again);
  const SimulatedJob job = simulate_job(net, resolve(strategy, net, 1, "test"), {}, machine.simulated());
  Point point{held_memory(job.programs[0], net, 1).total(), {}};
  for (const Work& work : job.programs[0].works) {
    for (const Step& step : job.programs[0].steps)
      if (step.again() && &job.programs[0].works[step.work()] == &work)
        point.added += machine.costs().measure(work.task, 0).forward;
  }
  return point;
}

// The least computing added under a limit, of every set of layers.
TEST(Recompute, OfChainsIsTheBestOfAllSets) {
  const DeviceGraph graph = testing::ready_machine("layer-wise-p100", 1);
  AbsentMachine machine(graph);
  int exact = 0, limits = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const Network net = random_chain(seed, 6);
    std::vector<Point> all;
    for (int set = 0; set < 1 << 6; ++set) {
      IndexedVector<NodeIndex, bool> again(net.nodes().size(), false);
      for (int i = 0; i < 6; ++i) again[NodeIndex(i + 1)] = (set >> i & 1) == 1;
      all.push_back(point_of(net, again, machine));
    }
    const auto by_memory = [](const Point& point) { return point.memory; };
    const int64_t least = std::ranges::min(all, {}, by_memory).memory.count, most = all[0].memory.count;
    for (int part = 0; part < 8; ++part) {
      const Bytes limit{least + (most - least) * part / 8};
      double best = INFINITY;
      for (const Point& point : all)
        if (point.memory <= limit) best = std::min(best, point.added.count);
      SCOPED_TRACE(fmt::format("seed {}, {} of {} to {} bytes", seed, limit.count, least, most));
      ++limits;
      try {
        const RecomputedStrategy found =
            recompute_within(limit, machine.simulated(), net, built_in_strategy("single", net, 1), 1, "test");
        EXPECT_LE(found.memory, limit);
        EXPECT_GE(found.added.count, best * (1 - 1e-9));
        EXPECT_LE(found.lower_bound.count, best * (1 + 1e-9));
        exact += found.added.count <= best * (1 + 1e-9);
      } catch (const UserError&) {
        EXPECT_LT(part, 3) << "nothing was found";  // the arena has gaps, see recomputation.md
      }
    }
  }
  EXPECT_GE(exact, limits * 8 / 10);
}

class RecomputeZoo : public ::testing::TestWithParam<std::string> {};

// Half of what lies in the arena, at the price of a forward pass at most.
TEST_P(RecomputeZoo, FitsInHalfTheMemory) {
  const bool volume = GetParam() == "u-net-3d";
  const Network net = volume ? testing::zoo_net("u-net-3d", 2, {1, 16, 16, 16}, {16, 16, 16})
                             : testing::zoo_net("u-net", 4, {1, 64, 64}, {64, 64});
  const DeviceGraph graph = testing::ready_machine("layer-wise-p100", 1);
  AbsentMachine machine(graph);
  const Strategy start = built_in_strategy("single", net, 1);
  const auto frontier = recompute_frontier(8, machine.simulated(), net, start, 1);
  ASSERT_GE(frontier.size(), 3u);
  for (size_t i = 1; i < frontier.size(); ++i) {
    EXPECT_GT(frontier[i].memory, frontier[i - 1].memory);
    EXPECT_LE(frontier[i].added.count, frontier[i - 1].added.count * (1 + 1e-9));
  }
  const SimulatedJob kept = simulate_job(net, resolve(start, net, 1, "test"), {}, machine.simulated());
  const HeldMemory held = held_memory(kept.programs[0], net, 1);
  const Bytes half{held.total().count - held.arena.count / 2};
  const RecomputedStrategy found = recompute_within(half, machine.simulated(), net, start, 1, "test");
  EXPECT_LE(found.memory, half);
  EXPECT_LE(found.iteration.count, 1.35 * kept.simulation.iteration.count);
  // The file of the strategy carries the choice.
  const Strategy read = parse_strategy(strategy_text(found.strategy), "file");
  const SimulatedJob again = simulate_job(net, resolve(read, net, 1, "file"), {}, machine.simulated());
  EXPECT_EQ(held_memory(again.programs[0], net, 1).total(), found.memory);
}

INSTANTIATE_TEST_SUITE_P(Nets, RecomputeZoo, ::testing::Values("u-net", "u-net-3d"), [](const auto& info) {
  return info.param == "u-net" ? std::string("u_net") : std::string("u_net_3d");
});

TEST(Recompute, SaysWhatIsTheLeast) {
  const Network net = random_chain(1, 5);
  const DeviceGraph graph = testing::ready_machine("layer-wise-p100", 1);
  AbsentMachine machine(graph);
  try {
    recompute_within({1000}, machine.simulated(), net, built_in_strategy("single", net, 1), 1, "limit");
    FAIL() << "fits in 1000 bytes";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("limit: a rank would hold more than 0.0 MiB"));
  }
}

}  // namespace
}  // namespace cortado
