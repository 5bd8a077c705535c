// The Simulator against SimGrid, on the same hardware, programs and computing times: what both say of
// messages that share links, of lanes that wait for each other and of steps that are carried must agree.
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

#include "cortado/machine/file.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/sim/step_seconds.h"

#include "tests/sim/jobs.h"
#include "tests/sim/simgrid_job.h"

namespace cortado {
namespace {

struct Case {
  std::string net, machine, strategy;
  int devices = 1;
  bool late = true;
  GradientChunks chunks{};
};

std::string name_of(const Case& one) {
  return fmt::format("{} on {} of {}, {}{}", one.net, one.devices, one.machine, one.strategy,
                     one.late ? "" : ", updates at once");
}

Network zoo_net(const std::string& name, int64_t samples) {
  const NetFile file = read_net(CORTADO_SOURCE_DIR "/models/" + name + "/train_val.prototxt");
  const Shape sample = name == "lenet" ? Shape{1, 28, 28} : Shape{3, 224, 224};
  return load_network(file, net_state(Phase::train),
                      [&](const LayerDeclaration& layer) {
                        std::vector<Shape> shapes(layer.tops.size(), Shape{samples});
                        for (int64_t extent : sample.extents()) shapes[0].append(extent);
                        return shapes;
                      })
      .network;
}

// "ethernet": as many workstations as wanted.
DeviceGraph machine_named(const std::string& name, int devices) {
  if (name != "ethernet")
    return load_machine(CORTADO_SOURCE_DIR "/machines/" + name + ".json").first(devices);
  Machine machine = load_machine(CORTADO_SOURCE_DIR "/machines/workstations-1gbe.json").machine();
  machine.nodes.resize(static_cast<size_t>(devices), machine.nodes.front());
  return DeviceGraph(machine);
}

// Ours and SimGrid's seconds of an iteration: what the first is more than the second, as a share of it.
double difference(const Case& one) {
  const DeviceGraph machine = machine_named(one.machine, one.devices);
  const Network net = zoo_net(one.net, 8 * one.devices);
  Strategy strategy = load_strategy(one.strategy, net, one.devices);
  strategy.schedule = {one.chunks, one.late};
  auto programs = testing::programs_of(net, strategy, one.devices);
  // SimGrid's links share fairly, whatever is needed first.
  for (Program& program : programs)
    for (Step& step : program.steps) step.needed = 0;
  AnalyticCosts costs(machine);
  std::vector<IndexedVector<StepIndex, Seconds>> seconds;
  for (const Program& program : programs)
    seconds.push_back(StepSeconds(program, costs, machine.node_of_devices()).of_all());
  const Simulation ours = simulate(programs, costs, machine);
  const double theirs = testing::simgrid_iteration(programs, seconds, machine);
  const double more = ours.iteration.count / theirs - 1;
  fmt::print("{}: {:.3f} ms computing, {:.3f} ms ours, {:.3f} ms SimGrid's: {:+.2f} %\n", name_of(one),
             1e3 * ours.computing[0].count, 1e3 * ours.iteration.count, 1e3 * theirs, 100 * more);
  return more;
}

class SimGrid : public ::testing::TestWithParam<Case> {};

TEST_P(SimGrid, TakesAsLong) { EXPECT_LE(std::abs(difference(GetParam())), 0.1) << name_of(GetParam()); }

// One larger job by hand: CORTADO_SIMGRID="resnet-50 lassen data 64". Messages grow with the square of the
// devices.
TEST(SimGridByHand, TakesAsLong) {
  const char* words = std::getenv("CORTADO_SIMGRID");
  if (words == nullptr) GTEST_SKIP() << "CORTADO_SIMGRID names no job";
  Case one;
  std::istringstream(words) >> one.net >> one.machine >> one.strategy >> one.devices;
  EXPECT_LE(std::abs(difference(one)), 0.1) << name_of(one);
}

// Of many short messages from one device SimGrid lets the latencies pass together; here, as the planner
// counts them, they follow one another. So they may take longer than SimGrid's, not less.
TEST(SimGridLatency, CountsForEachShortMessage) {
  for (const Case& one :
       {Case{"lenet", "lassen", "random:3", 16}, Case{"lenet", "cori-phase-1", "owt", 64}}) {
    const double more = difference(one);
    EXPECT_GT(more, 0.1) << name_of(one);
    EXPECT_LT(more, 1) << name_of(one);
  }
}

const GradientChunks by_layer{.kind = GradientChunks::Kind::layer, .layers = 0, .bytes = {}};

INSTANTIATE_TEST_SUITE_P(
    Jobs, SimGrid,
    ::testing::Values(Case{"alexnet", "cori-phase-1", "data", 4}, Case{"alexnet", "cori-phase-1", "data", 16},
                      Case{"alexnet", "cori-phase-1", "data", 64}, Case{"alexnet", "lassen", "data", 4},
                      Case{"alexnet", "lassen", "data", 16}, Case{"alexnet", "lassen", "data", 64},
                      Case{"alexnet", "ethernet", "data", 4, false},
                      Case{"alexnet", "ethernet", "data", 16, false},
                      Case{"vgg-a", "cori-phase-1", "data", 16, false, by_layer},
                      Case{"vgg-a", "lassen", "owt", 16}, Case{"vgg-a", "cori-phase-1", "owt", 16},
                      Case{"vgg-a", "cori-phase-1", "owt", 64}, Case{"alexnet", "lassen", "model", 4},
                      Case{"alexnet", "cori-phase-1", "model", 16}, Case{"vgg-a", "lassen", "spatial", 4},
                      Case{"vgg-a", "ethernet", "spatial", 16}, Case{"resnet-50", "cori-phase-1", "data", 4},
                      Case{"resnet-50", "lassen", "data", 16}, Case{"lenet", "ethernet", "random:5", 4},
                      Case{"vgg-a", "lassen", "random:3", 16}),
    [](const ::testing::TestParamInfo<Case>& info) {
      std::string name = name_of(info.param);
      std::ranges::replace_if(
          name, [](unsigned char letter) { return !std::isalnum(letter); }, '_');
      return name;
    });

}  // namespace
}  // namespace cortado
