#include "cortado/exec/time_task.h"

#include <gtest/gtest.h>

#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/exec/timed_runs.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/recurrent.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/softmax_loss.h"

namespace cortado {
namespace {

// Names the passes that took time.
std::string passes(const PassTimes& times) {
  return std::string(times.forward.count > 0 ? "f" : "") + (times.backward_weights.count > 0 ? "w" : "") +
         (times.backward.count > 0 ? "b" : "");
}

Task task_of(LayerPtr layer, std::vector<Shape> inputs) {
  return whole_task(std::move(layer), Phase::train, inputs, 1);
}

LayerPtr convolution() {
  ConvolutionOptions options;
  options.num_output = 32;
  options.kernel = {3};
  options.pad = {1};
  return std::make_shared<Convolution>(options);
}

TEST(TimeTask, RunsThePassesThatTheTaskHas) {
  Task task = task_of(convolution(), {{2, 16, 12, 12}});
  EXPECT_EQ(passes(time_task(task)), "fwb");
  EXPECT_EQ(passes(time_task(task, "reference")), "fwb");
  task.input_gradients = {false};
  EXPECT_EQ(passes(time_task(task)), "fw");
  task.parameter_gradients = {false, false};
  EXPECT_EQ(passes(time_task(task)), "f");
  EXPECT_EQ(passes(time_task(task_of(std::make_shared<Pooling>(PoolingOptions{.kernel = {2}, .stride = {2}}),
                                     {{2, 16, 12, 12}}))),
            "fb");
  EXPECT_EQ(passes(time_task(task_of(std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{}), {{8, 10}, {8}}))),
            "fb");
  EXPECT_EQ(passes(time_task(task_of(std::make_shared<Eltwise>(EltwiseOptions{}),
                                     {{2, 16, 12, 12}, {2, 16, 12, 12}})))
                .substr(0, 1),
            "f");
}

// Its queue does the work of a GPU's kernels, in memory that this thread may not touch.
TEST(TimeTask, TakesItsTimesFromTheQueueOfADevice) {
  const auto emulated = device::make_emulated();
  const Task task = task_of(convolution(), {{1, 2, 6, 6}});
  EXPECT_EQ(passes(time_task(task, "gpu", usual_runs, *emulated)), "fwb");
  EXPECT_EQ(passes(time_task(task_of(std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{}), {{8, 10}, {8}}),
                             "gpu", usual_runs, *emulated)),
            "fb");
}

// Of made-up values another number of samples would pass.
TEST(TimeTask, LeavesLayersOutThatDependOnValues) {
  const Task filter = task_of(std::make_shared<Filter>(FilterOptions{.samples = 3}), {{8, 10}, {8}});
  EXPECT_EQ(passes(time_task(filter)), "");
  const RecurrentOptions options{.num_output = 16};
  EXPECT_EQ(passes(time_task(task_of(std::make_shared<Recurrent>(options), {{4, 8, 20}, {4, 8}}))), "fb");
}

// Parts of layers, as the planner cuts them.
TEST(TimeTask, RunsShares) {
  const Task whole = task_of(convolution(), {{4, 16, 12, 12}});
  Box rows = whole.domain_box, channels = whole.domain_box;
  rows[2] = {0, 6};
  channels[1] = {0, 16};
  EXPECT_EQ(passes(time_task(cut_task(whole, rows))), "fwb");
  EXPECT_EQ(passes(time_task(cut_task(whole, channels))), "fwb");
  const Task summed = task_of(whole.layer().without_bias(), {{4, 16, 12, 12}});
  EXPECT_EQ(passes(time_task(cut_task(summed, summed.domain_box, Range{0, 8}))), "fwb");
  const Task norm = task_of(std::make_shared<BatchNorm>(BatchNormOptions{}), {{4, 16, 12, 12}});
  Box samples = norm.domain_box;
  samples[0] = {0, 2};
  EXPECT_EQ(passes(time_task(cut_task(norm, samples))), "fb");
}

// A chain that the asked implementation does not run as one is run in parts.
TEST(TimeTask, RunsChains) {
  Task task = task_of(std::make_shared<BatchNorm>(BatchNormOptions{}), {{4, 16, 12, 12}});
  task.layers.push_back(std::make_shared<Scale>(ScaleOptions{.bias_term = true}));
  task.layers.push_back(std::make_shared<Pointwise>(ReluOptions{}));
  task.parameter_gradients.insert(task.parameter_gradients.end(), {true, true});
  EXPECT_EQ(passes(time_task(task)), "fb");
  EXPECT_EQ(passes(time_task(task, "reference")), "fb");
  Task fused = task_of(convolution(), {{2, 16, 12, 12}});
  fused.layers.push_back(std::make_shared<Pointwise>(ReluOptions{}));
  EXPECT_EQ(passes(time_task(fused)), "fwb");
  EXPECT_EQ(passes(time_task(fused, "reference")), "fwb");
}

// A chain's first layer may read f32 samples in a net of bf16. What lies between its parts is bf16.
TEST(TimeTask, PartsOfChainsReadWhatThePartBeforeWrites) {
  Task chain = task_of(convolution(), {{2, 16, 12, 12}});
  chain.layers.push_back(std::make_shared<Pointwise>(ReluOptions{}));
  chain.input_types = {ElementType::f32};
  chain.output_types = {ElementType::bf16};
  const std::vector<ChainPart> parts = parts_of(chain, "reference");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].task.input_type(0), ElementType::f32);
  EXPECT_EQ(parts[0].task.output_type(0), ElementType::bf16);
  EXPECT_EQ(parts[1].task.input_type(0), ElementType::bf16);
  EXPECT_EQ(parts[1].task.output_type(0), ElementType::bf16);
  EXPECT_EQ(parts[1].task.input_boxes[0], parts[0].task.output_boxes[0]);
  EXPECT_EQ(passes(time_task(chain, "reference")), "fwb");
}

PassTimes run_of(double forward, double backward) { return {{forward}, {}, {backward}}; }

TEST(TimedRuns, AMomentsDisturbanceIsNotHalfOfTheResult) {
  TimedRuns runs(5);
  runs.add(run_of(0.0003, 0.0004));
  EXPECT_FALSE(runs.are_enough());
  runs.add(run_of(0.0003, 0.0280));
  EXPECT_FALSE(runs.are_enough());
  runs.add(run_of(0.0003, 0.0004));
  EXPECT_TRUE(runs.are_enough());
  EXPECT_EQ(runs.median().backward.count, 0.0004);
}

TEST(TimedRuns, EndWhenSecondsOrRunsAreEnough) {
  TimedRuns steady(5), restless(3);
  for (int i = 0; i < 2; ++i) steady.add(run_of(0.5, 0.5));
  EXPECT_TRUE(steady.are_enough());
  for (double seconds : {1.0, 2.0, 4.0}) restless.add(run_of(seconds, 0));
  EXPECT_TRUE(restless.are_enough());
  EXPECT_EQ(restless.median().forward.count, 2.0);
}

}  // namespace
}  // namespace cortado
