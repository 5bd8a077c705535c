#include "cortado/sim/simulator.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "cortado/cost/analytic.h"
#include "cortado/plan/plan_graph.h"
#include "cortado/plan/planner.h"
#include "cortado/program/volume.h"
#include "cortado/sim/step_seconds.h"

#include "tests/program/nets.h"
#include "tests/sim/jobs.h"

namespace cortado {
namespace {

using testing::carries;
using testing::machine_of;
using testing::programs_of;
using testing::simulated;

TEST(Simulator, OneRankTakesTheSumOfItsSteps) {
  const DeviceGraph machine = machine_of(1, 1);
  AnalyticCosts costs(machine);
  const std::vector<int> nodes{0};
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Network net = testing::random_net(seed);
    const auto programs = programs_of(net, built_in_strategy("single", net, 1), 1);
    double sum = 0;
    for (Seconds seconds : StepSeconds(programs[0], costs, nodes).of_all()) sum += seconds.count;
    const Simulation found = simulate(programs, costs, machine);
    EXPECT_NEAR(found.iteration.count, sum, 1e-12);
    EXPECT_NEAR(found.computing[0].count, sum, 1e-12);
  }
}

// Where nothing can overlap, an iteration takes Eq. 1's sum (docs/explanation/simulation.md).
TEST(Simulator, ASerialChainTakesWhatThePlannerAddsUp) {
  testing::NetBuilder builder;
  const Network net =
      builder.conv("a", "data").tanh("a", "b").conv("c", "b").conv("d", "c").build(Phase::test);
  for (int ranks : {2, 4}) {
    const DeviceGraph machine = machine_of(1, ranks);
    AnalyticCosts costs(machine);
    const plan::PlanGraph graph =
        plan::make_plan_graph(net, {.devices = ranks}, costs, machine.node_of_devices());
    // The last layer is whole, so that nothing moves for the report of its output, which Eq. 1 leaves out.
    const std::string cut = "{\"c\": " + std::to_string(ranks) + "}";
    for (const std::string& middle : {std::string("{\"n\": 2}"), std::string("{\"h\": 2}"), cut}) {
      SCOPED_TRACE(middle + " on " + std::to_string(ranks));
      const Strategy strategy =
          parse_strategy(R"({"format": "cortado-strategy", "version": 1, "ranks": )" + std::to_string(ranks) +
                             R"(, "layers": {"a": )" + cut + R"(, "b": )" + cut + R"(, "c": )" + middle +
                             R"(, "d": {"n": 1}}})",
                         "test");
      const double sum = graph.costs.seconds(graph.assignment(net, strategy));
      EXPECT_NEAR(simulated(net, strategy, machine).iteration.count, sum, 1e-9 * sum);
    }
  }
}

// Whatever the net and its cuts: every step runs once, after what it waits for; a lane's compute steps follow
// one another; an iteration is no shorter than any rank's computing, and no longer than all steps of all
// ranks.
TEST(Simulator, StepsOfRandomJobsKeepTheirOrder) {
  testing::simulate_random_jobs(60, [&](const testing::RandomJob& job, const Simulation& found) {
    const auto& [name, machine, net, programs] = job;
    AnalyticCosts costs(machine);
    size_t at = 0;
    double sum = 0;
    for (const Program& program : programs) {
      const auto own = testing::entries_of(program, found);
      at += own.size();
      Seconds computed, lane_end{-1};  // it may have begun while others ended the iteration before
      for (size_t s = 0; s < own.size(); ++s) {
        const Step& step = program.steps[StepIndex(s)];
        ASSERT_EQ(own[s].rank, program.rank);
        ASSERT_EQ(own[s].step, StepIndex(s));
        EXPECT_EQ(own[s].lane, step.lane);
        EXPECT_LE(own[s].begin, own[s].end);
        for (StepIndex other : step.waits)
          EXPECT_LE(own[static_cast<size_t>(other.value())].end, own[s].begin);
        if (step.lane == Lane::communication) continue;
        EXPECT_LE(lane_end, own[s].begin);
        lane_end = own[s].end;
        computed += own[s].end - own[s].begin;
      }
      const auto rank = static_cast<size_t>(program.rank);
      EXPECT_NEAR(found.computing[rank].count, computed.count, 1e-12);
      if (!carries(programs)) {
        EXPECT_LE(computed.count, found.ends[rank].count + 1e-12);
      }
      EXPECT_LE(found.ends[rank], found.iteration);
      for (Seconds seconds : StepSeconds(program, costs, machine.node_of_devices()).of_all())
        sum += seconds.count;
    }
    EXPECT_EQ(at, found.timeline.size());
    EXPECT_LE(found.iteration.count, sum + 1e-9);
    EXPECT_EQ(found.timeline.size(), simulate(programs, costs, machine).timeline.size());
    EXPECT_EQ(found.iteration, simulate(programs, costs, machine).iteration);
  });
}

// Convolutions, then an inner product that makes most of the gradients.
Network convolutions_and_product() {
  InnerProductOptions options;
  options.num_output = 64;
  testing::NetBuilder builder;
  std::string top = "data";
  for (int i = 0; i < 16; ++i) {
    const std::string bottom = std::exchange(top, "a" + std::to_string(i));
    builder.conv(top, bottom);
  }
  return builder.declare("b", std::make_shared<InnerProduct>(options), {top}, {"b"})
      .declare("target", std::make_shared<InnerProduct>(options), {"data"}, {"target"})
      .loss("b", "target")
      .build();
}

// The long sum of the last layer goes on while the next iteration's first layers are computed.
TEST(Simulator, LateUpdatesHideSumsUnderTheNextForwardPass) {
  const Network net = convolutions_and_product();
  const DeviceGraph machine = machine_of(2, 1);
  AnalyticCosts costs(machine);
  Strategy strategy = built_in_strategy("data", net, 2);
  strategy.schedule.chunks.kind = GradientChunks::Kind::layer;
  const auto simulated_late = [&](bool late) {
    strategy.schedule.late_updates = late;
    return simulated(net, strategy, machine);
  };
  const Simulation at_once = simulated_late(false), late = simulated_late(true);
  const std::vector<int> nodes = machine.node_of_devices();
  const auto programs = programs_of(net, strategy, 2);
  StepSeconds seconds(programs[0], costs, nodes);
  double forward = 0;
  for (const Step& step : programs[0].steps) {
    if (step.runs(Pass::forward) && step.work() <= WorkIndex(16)) forward += seconds.of(step).count;
  }
  EXPECT_GT(forward, 0);
  EXPECT_LT(late.iteration.count, at_once.iteration.count - forward / 2);
  EXPECT_NEAR(late.computing[0].count, at_once.computing[0].count, 1e-12);
  // No iteration is shorter than its computing, or than its messages take on the link.
  const double sums = static_cast<double>(volumes_of(programs[0]).gradients.sent.count) / 0.1e9;
  EXPECT_GE(late.iteration.count, std::max(late.computing[0].count, sums) - 1e-12);
  // The last sum is still under way when the iteration has ended.
  Seconds last;
  for (const TimelineEntry& entry : late.timeline) last = std::max(last, entry.end);
  EXPECT_GT(last, late.iteration);
}

// An inner product of 1,000 by 64 over 8 samples on two devices of 1 GFLOP/s, 10 GB/s of memory, whose host
// gives 0.5 GB/s: each pass has 2 * 4 * 64,000 FLOPs, and 256,000 bytes of each device go there and back.
TEST(Simulator, ServersHideNothing) {
  SourceOptions data;
  data.kind = SourceOptions::Kind::input;
  data.shapes = {Shape{8, 1000}, Shape{8, 64}};
  InnerProductOptions product;
  product.num_output = 64;
  product.bias_term = false;
  const Network net =
      testing::built({testing::declared("data", std::make_shared<Source>(data), {}, {"x", "y"}),
                      testing::declared("f", std::make_shared<InnerProduct>(product), {"x"}, {"f"}),
                      testing::declared("loss", std::make_shared<EuclideanLoss>(), {"f", "y"}, {"loss"})});
  Machine machine = machine_of(1, 2).machine();
  machine.nodes[0].host = {0.5e9};
  const DeviceGraph hosts(machine);
  const double passes = 2 * 2 * 4 * 64e3 / 1e9, there_and_back = 2 * 2 * 256e3 / 0.5e9;
  const double update = 5 * 256e3 / 2 / 10e9, overheads = 12e-6;  // at most: of 4 tasks and 8 messages
  const double seconds = passes + there_and_back + update;
  Strategy strategy = built_in_strategy("server", net, 2);
  for (const bool late : {true, false}) {
    strategy.schedule.late_updates = late;
    const Simulation found = simulated(net, strategy, hosts);
    EXPECT_GE(found.iteration.count, seconds);
    EXPECT_LE(found.iteration.count, seconds + overheads);
    const auto programs = programs_of(net, strategy, 2);
    const auto entries = testing::entries_of(programs[0], found);
    for (const TimelineEntry& entry : entries) {
      EXPECT_GE(entry.begin.count, 0);
      EXPECT_LE(entry.end, found.iteration);
    }
    EXPECT_EQ(volumes_of(programs[0]).gradients, (Volume{{512'000}, {512'000}}));
  }
  AnalyticCosts costs(hosts);
  const plan::Plan plan = plan::make_plan(net, {.devices = 2}, costs, hosts.node_of_devices());
  const auto& planned = *std::ranges::find(plan.baselines, "server", &plan::Assignment::name);
  EXPECT_NEAR(planned.seconds.count, simulated(net, strategy, hosts).iteration.count, 1e-6);
}

bool goes_to_servers(const Program& program, const Step& step) {
  return !step.group().empty() && is_served(program.collective_of(step));
}

// Layers go to servers one after the other, and each begins when all is computed.
TEST(Simulator, ServersTakeOneLayerAfterTheOther) {
  const Network net = convolutions_and_product();
  const DeviceGraph machine = machine_of(2, 1);
  const Strategy strategy = built_in_strategy("server", net, 2);
  const auto programs = programs_of(net, strategy, 2);
  const Simulation found = simulated(net, strategy, machine);
  AnalyticCosts costs(machine);
  for (const Program& program : programs) {
    const auto entries = testing::entries_of(program, found);
    Seconds computed, served;
    StepSeconds seconds(program, costs, machine.node_of_devices());
    for (const TimelineEntry& entry : entries) {
      const Step& step = program.steps[entry.step];
      if (step.is<steps::Compute>()) computed = std::max(computed, entry.end);
      if (goes_to_servers(program, step)) served += seconds.of(step);
    }
    EXPECT_GT(served.count, 0);
    for (const TimelineEntry& entry : entries) {
      if (goes_to_servers(program, program.steps[entry.step])) {
        EXPECT_GE(entry.begin, computed);
      }
    }
    EXPECT_GE(found.iteration.count, (computed + served).count - 1e-12);
  }
}

// A sum that finds a later one on its links waits for what is on the way, and only between nodes.
TEST(Simulator, WhatIsNeededSoonerWaitsForWhatIsOnItsLinks) {
  constexpr double wait = 5e-4;
  const Network net = convolutions_and_product();
  Strategy strategy = built_in_strategy("data", net, 2);
  strategy.schedule.chunks.kind = GradientChunks::Kind::layer;
  const auto programs = programs_of(net, strategy, 2);
  for (const bool across : {true, false}) {
    Machine machine = (across ? machine_of(2, 1) : machine_of(1, 2)).machine();
    machine.calibration.busy_link = {wait};
    const DeviceGraph graph(machine);
    AnalyticCosts costs(graph);
    StepSeconds seconds(programs[0], costs, graph.node_of_devices());
    const Simulation found = simulate(programs, costs, graph);
    int waited = 0;
    for (const TimelineEntry& sum : testing::entries_of(programs[0], found)) {
      const Step& step = programs[0].steps[sum.step];
      if (step.group().empty()) continue;
      const auto later = [&](const TimelineEntry& other) {
        const Step& its = programs[0].steps[other.step];
        return !its.group().empty() && its.needed > step.needed && other.begin < sum.begin &&
               sum.begin < other.end;
      };
      if (!std::ranges::any_of(testing::entries_of(programs[0], found), later)) continue;
      const double alone = seconds.of(step).count, took = (sum.end - sum.begin).count;
      EXPECT_GE(took, (alone + (across ? wait : 0)) * (1 - 1e-9));
      waited += took >= alone + wait * (1 - 1e-9) ? 1 : 0;
    }
    EXPECT_EQ(waited > 0, across);
  }
}

// A rank's computing takes longer by what the bytes cost that moved while it computed: here one sum at a
// time.
TEST(Simulator, MessagesTakeTheirPartOfComputing) {
  constexpr double per_byte = 2e-9;
  const Network net = convolutions_and_product();
  Strategy strategy = built_in_strategy("data", net, 2);
  strategy.schedule = {.chunks = {.kind = GradientChunks::Kind::first, .layers = 1}, .late_updates = false};
  for (const bool across : {true, false}) {
    const DeviceGraph free = across ? machine_of(2, 1) : machine_of(1, 2);
    Machine taxed = free.machine();
    (across ? taxed.calibration.message_overhead.network : taxed.calibration.message_overhead.node) =
        per_byte;
    const DeviceGraph machine(taxed);
    AnalyticCosts costs(machine);
    const std::vector<int> nodes = machine.node_of_devices();
    const auto programs = programs_of(net, strategy, 2);
    const Simulation before = simulate(programs, costs, free), found = simulate(programs, costs, machine);
    for (const Program& program : programs) {
      const auto entries = testing::entries_of(program, found);
      StepSeconds seconds(program, costs, nodes);
      double lost = 0;
      for (const TimelineEntry& sum : entries) {
        const Step& step = program.steps[sum.step];
        if (step.group().empty() || sum.end <= sum.begin) continue;
        double beside = 0;  // seconds of computing while it was under way
        for (const TimelineEntry& entry : entries) {
          if (entry.lane != Lane::compute) continue;
          const Seconds begin = std::max(entry.begin, sum.begin), end = std::min(entry.end, sum.end);
          beside += std::max(0.0, (end - begin).count);
        }
        // Two ranks send each other as much as they sum up.
        lost += 2 * per_byte * static_cast<double>(seconds.group_step(step).bytes.count) * beside /
                (sum.end - sum.begin).count;
      }
      const auto rank = static_cast<size_t>(program.rank);
      EXPECT_GT(lost, 0.01 * before.computing[rank].count);
      const double looked_over = 1e-9 * static_cast<double>(entries.size());  // what is no event of its own
      EXPECT_NEAR(found.computing[rank].count - before.computing[rank].count, lost, looked_over);
    }
  }
}

// Messages of nanoseconds after hours of computing: too short to tell two times apart there.
TEST(Simulator, ShortMessagesEndHoweverLateTheyAre) {
  Node node;
  node.devices.assign(
      2, Device{.name = "", .peak = {1}, .memory_bandwidth = {1}, .memory = {1 << 30}, .task_overhead = {}});
  node.links = {{.group = 2, .link = {{1e-14}, {1e18}}}};
  Machine slow;
  slow.name = "slow";
  slow.nodes = {node};
  const DeviceGraph machine(slow);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Network net = testing::random_net(seed);
    const Simulation found = simulated(net, load_strategy("random:" + std::to_string(seed), net, 2), machine);
    EXPECT_GT(found.iteration.count, 1000);
  }
}

// A tensor that two devices of one node send to two of another one goes through one interface.
TEST(Simulator, DevicesShareTheInterfaceOfTheirNode) {
  ConvolutionOptions options;
  options.num_output = 8;
  options.kernel = {1};
  SourceOptions source;
  source.kind = SourceOptions::Kind::input;
  source.shapes = {Shape{4, 8, 64, 64}};
  const Network net =
      testing::built({testing::declared("data", std::make_shared<Source>(source), {}, {"data"}),
                      testing::declared("a", std::make_shared<Convolution>(options), {"data"}, {"a"}),
                      testing::declared("b", std::make_shared<Convolution>(options), {"a"}, {"b"})},
                     Phase::test);
  const DeviceGraph machine = machine_of(2, 2);
  // Rank 0 alone sends 256 KiB to rank 2; then ranks 0 and 1 send as much each to ranks 2 and 3.
  const auto moved = [&](const char* first, const char* second) {
    const Strategy strategy = parse_strategy(
        std::string(R"({"format": "cortado-strategy", "version": 1, "ranks": 4, "layers": {"a": )") + first +
            R"(, "b": )" + second + "}}",
        "test");
    const auto programs = programs_of(net, strategy, 4);
    AnalyticCosts costs(machine);
    const Simulation found = simulate(programs, costs, machine);
    double longest = 0;
    size_t at = 0;
    for (const Program& program : programs) {
      for (const Step& step : program.steps) {
        const TimelineEntry& entry = found.timeline[at++];
        if (step.is<steps::Exchange>() && !program.movement_of(step).sends.empty())
          longest = std::max(longest, (entry.end - entry.begin).count);
      }
    }
    return longest;
  };
  const double one = moved(R"({"n": 1, "devices": [0]})", R"({"n": 1, "devices": [2]})");
  EXPECT_NEAR(one, 10e-6 + 4 * 8 * 64 * 64 * 4 / 0.1e9, 1e-6);
  // Two messages of half the size each through one interface take as long as the whole.
  const double two = moved(R"({"n": 2, "devices": [0, 1]})", R"({"n": 2, "devices": [2, 3]})");
  EXPECT_NEAR(two, one, 30e-6);
}

}  // namespace
}  // namespace cortado
