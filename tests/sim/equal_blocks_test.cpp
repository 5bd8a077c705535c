// A job of equal blocks of ranks is simulated by two of them, and takes what it takes rank by rank.
#include "cortado/program/equal_blocks.h"

#include <gtest/gtest.h>

#include "cortado/sim/simulated_job.h"

#include "tests/program/nets.h"
#include "tests/sim/jobs.h"

namespace cortado {
namespace {

using testing::machine_of;

// `strategy`, of one block of ranks, in each of so many blocks.
Strategy in_blocks(Strategy strategy, int blocks) {
  const int ranks = strategy.ranks;
  strategy.ranks *= blocks;
  for (Strategy::Rule& rule : strategy.rules) {
    ParallelConfig& config = rule.layer.config;
    const std::vector<int> devices = config.devices;
    config.weights.clear();
    config.degrees.n *= blocks;
    for (int block = 1; block < blocks; ++block)
      for (int device : devices) config.devices.push_back(block * ranks + device);
    rule.planned_for = "";
  }
  return strategy;
}

// What all ranks do is what those that differ do.
void expect_as_all(const Network& net, const Strategy& strategy, const DeviceGraph& machine,
                   const SimulatedJob& found) {
  const NodeStrategies strategies = resolve(strategy, net, machine.devices(), "test");
  const SimulatedJob all = simulate_job(net, strategies, strategy.schedule,
                                        AbsentMachine(machine).simulated(), SimulatedRanks::all);
  ASSERT_EQ(std::ssize(all.programs), machine.devices());
  ASSERT_EQ(found.blocks.job(), machine.devices());
  ASSERT_EQ(std::ssize(found.programs), found.blocks.different());
  const double iteration = all.simulation.iteration.count, near = 1e-9 * iteration;
  EXPECT_NEAR(found.simulation.iteration.count, iteration, near);
  for (const Program& program : all.programs) {
    const int rank = program.rank, block = found.blocks.ranks;
    const auto same = static_cast<size_t>(rank < found.blocks.different() ? rank : block + rank % block);
    EXPECT_NEAR(found.simulation.ends[same].count, all.simulation.ends[static_cast<size_t>(rank)].count,
                near);
    EXPECT_NEAR(found.simulation.computing[same].count,
                all.simulation.computing[static_cast<size_t>(rank)].count, near);
    const auto ours = testing::entries_of(found.programs[same], found.simulation),
               theirs = testing::entries_of(program, all.simulation);
    ASSERT_EQ(ours.size(), theirs.size()) << "rank " << rank;
    for (size_t s = 0; s < ours.size(); ++s) {
      EXPECT_NEAR(ours[s].begin.count, theirs[s].begin.count, near) << "rank " << rank << " step " << s;
      EXPECT_NEAR(ours[s].end.count, theirs[s].end.count, near) << "rank " << rank << " step " << s;
    }
  }
}

TEST(EqualBlocks, TakeWhatAllRanksTake) {
  int together = 0;  // jobs of which blocks were left out
  const uint32_t jobs = 60;
  for (uint32_t seed = 0; seed < jobs; ++seed) {
    const int block = 1 << seed % 3, blocks = 3 + static_cast<int>(seed / 3 % 4);
    const int devices = 1 + static_cast<int>(seed / 12 % 2);  // of a node
    const bool whole = block % devices == 0;                  // nodes are in a block
    const DeviceGraph machine = machine_of(block * blocks / devices, devices);
    if (machine.devices() != block * blocks) continue;
    const Network one = testing::random_net(seed),
                  net = testing::random_net(seed, Phase::train, 2 * static_cast<int64_t>(blocks));
    Strategy strategy = in_blocks(load_strategy("random:" + std::to_string(seed), one, block), blocks);
    strategy.schedule.late_updates = seed % 5 == 0;
    SCOPED_TRACE(fmt::format("{}: {} blocks of {} ranks, {} to a node", seed, blocks, block, devices));
    const SimulatedJob found = simulate_job(net, resolve(strategy, net, machine.devices(), "test"),
                                            strategy.schedule, AbsentMachine(machine).simulated());
    together += found.blocks.different() < machine.devices();
    if (whole) {
      EXPECT_LE(found.blocks.ranks, found.blocks.blocks == 1 ? machine.devices() : block);
    }
    expect_as_all(net, strategy, machine, found);
  }
  EXPECT_GE(together, static_cast<int>(jobs) / 3);
}

EqualBlocks blocks_of(const Network& net, const Strategy& strategy, int ranks, bool reproducible = false) {
  return equal_blocks(place(net, resolve(strategy, net, ranks, "test"), ranks, reproducible), 1);
}

TEST(EqualBlocks, AreOfWhatSamplesAloneTellApart) {
  const Network net = testing::NetBuilder(16).conv("a", "data").conv("b", "data").loss("a", "b").build();
  const auto of = [&](const char* name, int ranks) {
    return blocks_of(net, built_in_strategy(name, net, ranks), ranks).blocks;
  };
  EXPECT_EQ(of("data", 8), 8);
  EXPECT_EQ(of("data", 2), 1);  // two are not worth it
  EXPECT_EQ(of("data", 6), 1);  // 16 samples: some ranks have three
  EXPECT_EQ(of("model", 4), 1);
  EXPECT_EQ(of("spatial", 4), 1);
  EXPECT_EQ(of("single", 8), 1);
  EXPECT_EQ(blocks_of(net, built_in_strategy("data", net, 8), 8, true).blocks, 1);  // a tree of sums
  const Strategy mixed = parse_strategy(
      R"({"format": "cortado-strategy", "version": 1, "ranks": 16,
          "layers": {"a": {"n": 16}, "b": {"n": 4, "h": 2, "c": 2}, "loss": {"n": 8}}})",
      "test");
  EXPECT_EQ(blocks_of(net, mixed, 16).blocks, 1);  // the loss is on ranks of two of the four blocks
  EXPECT_EQ(blocks_of(net, spread(mixed), 16).blocks, 4);
}

TEST(EqualBlocks, AreOfWholeNodesThatAreAlike) {
  const Network net = testing::NetBuilder(16).conv("a", "data").conv("b", "data").loss("a", "b").build();
  const auto of = [&](const Machine& machine) {
    const DeviceGraph graph(machine);
    const Strategy strategy = built_in_strategy("data", net, graph.devices());
    return simulate_job(net, resolve(strategy, net, graph.devices(), "test"), {},
                        AbsentMachine(graph).simulated())
        .blocks;
  };
  Machine machine = machine_of(8, 2).machine();
  for (size_t node = 0; node < 8; ++node) machine.nodes[node].name = std::to_string(node);
  EXPECT_EQ(of(machine).ranks, 2);
  EXPECT_EQ(of(machine).different(), 4);
  machine.nodes[5].nic = {0.05e9};
  EXPECT_EQ(of(machine).ranks, 16);
}

}  // namespace
}  // namespace cortado
