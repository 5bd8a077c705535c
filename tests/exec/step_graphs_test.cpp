// Iterations as graphs: which steps are in them, and that they change no bit.
#include "cortado/exec/step_graphs.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/exec/executor.h"
#include "cortado/layers/filler.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"

#include "tests/exec/test_device.h"

namespace cortado::step_graphs {
namespace {

const Shape images{2, 4, 6, 6};

// `more`: layers between two convolutions, from blob "a" to blob "a".
Network net(const std::string& more) {
  const std::string text = R"(
layer { name: "data" type: "Input" top: "x" top: "label"
  input_param { shape { dim: 2 dim: 4 dim: 6 dim: 6 } shape { dim: 2 } } }
layer { name: "a" type: "Convolution" bottom: "x" top: "a"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
)" + more + R"(
layer { name: "b" type: "InnerProduct" bottom: "a" top: "b"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "b" bottom: "label" top: "loss" })";
  return load_network(parse_net(text, "net.prototxt"), net_state(Phase::train), declared_source_shapes)
      .network;
}

const std::string relu = R"(layer { name: "relu" type: "ReLU" bottom: "a" top: "a" })";
const std::string drop = R"(layer { name: "drop" type: "Dropout" bottom: "a" top: "a" })";

struct Trained {
  std::vector<double> losses;
  std::vector<float> weights;
  std::vector<std::string> report;
};

// `look` is shown the timelines of executor.time_steps().
Trained train(const Network& network, const device::DeviceOptions& options, int non_finite_at = -1,
              const std::function<void(const Program&, const Timeline&)>& look = nullptr) {
  const testing::TestDevice opened(true, options);
  device::DeviceRuntime& device = opened;
  std::vector<float> batch(static_cast<size_t>(images.size()));
  const float labels[] = {1, 3};
  uint64_t iteration = 0;
  const BatchSource source = [&] {
    fill({.type = Filler::Type::gaussian}, Shape{images.size()}, {.seed = 5, .iteration = ++iteration},
         batch.data());
    return std::vector<const float*>{batch.data(), labels};
  };
  KernelChoice kernels{.kernels = gpu_kernels, .no_other = !device.runs_host_functions()};
  ParameterStore store(device);
  Executor executor(network, compile(network, {.kernels = kernels}), store, {{"data", source}});
  Trained trained;
  EXPECT_TRUE(executor.time_steps(look != nullptr));
  for (int i = 0; i < 6; ++i) {
    if (i == non_finite_at) {
      const auto& entry = store.entries()[store.find("b/weight")];
      device.queue().fill(entry.value, NAN, 1);
    }
    // A rate that changes, as the host's numbers of updates do.
    trained.losses.push_back(
        executor.run(i, [&](EntryIndex entry) { testing::descend(store, entry, 1e-3f / (1.0f + i)); }));
    if (i == non_finite_at) trained.report.push_back(executor.first_non_finite());
    if (look) look(executor.program(), executor.timeline());
  }
  trained.weights = store.canonical(store.find("a/weight"));
  for (const std::string& line : executor.device_report()) trained.report.push_back(line);
  return trained;
}

TEST(StepGraphs, ChangeNoBit) {
  for (const std::string& more : {relu, drop, relu + drop}) {
    const Network network = net(more);
    const Trained with = train(network, {.graphs = true}), without = train(network, {.graphs = false});
    EXPECT_EQ(with.losses, without.losses) << more;
    EXPECT_EQ(with.weights, without.weights) << more;
    EXPECT_NE(with.losses[4], with.losses[5]);
    EXPECT_EQ(without.report.front(), "graphs: none: they are off");
  }
}

// The device begins an emulated step late, so by its clock steps take longer than to be told to.
TEST(StepClock, SaysWhenTheDeviceDidTheStepsAndChangesNoBit) {
  const Network network = net(relu);
  int looks = 0;
  const auto look = [&](const Program& program, const Timeline& timeline) {
    ++looks;
    ASSERT_EQ(timeline.size(), program.steps.size());
    Seconds last;
    for (const TimelineEntry& entry : timeline) {
      if (program.steps[entry.step].lane != Lane::compute) continue;
      EXPECT_EQ(entry.begin, last);
      EXPECT_LE(entry.begin, entry.end);
      if (program.steps[entry.step].is<steps::Compute>()) {
        EXPECT_LT(entry.begin, entry.end);
      }
      last = entry.end;
    }
  };
  const Trained timed = train(network, {}, -1, look), untimed = train(network, {});
  EXPECT_EQ(looks, 6);
  EXPECT_EQ(timed.losses, untimed.losses);
  EXPECT_EQ(timed.weights, untimed.weights);
}

TEST(StepGraphs, HoldWhatNeedsNoHost) {
  EXPECT_THAT(train(net(relu), {}).report.front(),
              ::testing::MatchesRegex("graphs: [0-9]+ of [0-9]+ steps in [0-9]+ graphs"));
  const Network network = net(drop);
  EXPECT_THAT(train(network, {}).report.front(),
              ::testing::EndsWith("; not: layer 'drop' depends on the iteration"));
  const Compiled compiled = compile(network);
  const GraphPlan plan = plan_graphs(compiled.program, network);
  size_t steps = 0;
  for (const GraphPlan::Run& run : plan.runs) {
    EXPECT_GT(run.steps.size(), 1u);
    steps += run.steps.size();
    for (StepIndex s : run.steps) {
      const Step& step = compiled.program.steps[s];
      EXPECT_EQ(step.lane, Lane::compute);
      EXPECT_FALSE(step.is<steps::Update>() || step.is<steps::Barrier>());
      EXPECT_TRUE(s == run.steps.front() || step.waits.empty());
    }
  }
  EXPECT_GT(steps, 2u);
  EXPECT_LT(static_cast<int>(steps), plan.launched);
}

TEST(StepGraphs, ALossThatIsNotFiniteStillStopsAndIsNamed) {
  const Trained trained = train(net(relu), {}, 4);
  EXPECT_TRUE(std::isfinite(trained.losses[3]));
  EXPECT_FALSE(std::isfinite(trained.losses[4]));
  EXPECT_THAT(trained.report.front(), ::testing::HasSubstr("b/weight"));
}

}  // namespace
}  // namespace cortado::step_graphs
