// LSTM and RNN: gradients, the cases of Caffe's own tests of its layers, and the native kernel against the
// reference. tests/golden has PyTorch's values.
#include "cortado/layers/recurrent.h"

#include <cmath>

#include "cortado/base/error.h"
#include "cortado/kernels/select.h"

#include "tests/kernels/layer_run.h"
#include "tests/kernels/make_layer.h"

namespace cortado::check {
namespace {

using Recurrence = RecurrentOptions::Kind;

LayerPtr recurrent(Recurrence kind, int64_t outputs, bool exposed = false) {
  return layer<Recurrent>(RecurrentOptions{.kind = kind, .num_output = outputs, .expose_hidden = exposed});
}

struct RecurrentCase {
  Shape x;
  Shape fixed;  // the static input; of rank 0: none
  int64_t outputs = 3;
  bool exposed = true;
};

Task recurrent_task(Recurrence kind, const RecurrentCase& one, Phase phase = Phase::train) {
  std::vector<Shape> inputs{one.x, {one.x[0], one.x[1]}};
  if (one.fixed.rank() > 0) inputs.push_back(one.fixed);
  const int states = one.exposed ? (kind == Recurrence::lstm ? 2 : 1) : 0;
  for (int i = 0; i < states; ++i) inputs.push_back({1, one.x[1], one.outputs});
  return whole_task(recurrent(kind, one.outputs, one.exposed), phase, inputs, 1 + states);
}

// Indicators that are 0 and 1, none but 0, or anything between a half and one.
CheckOptions with_indicators(double low, double high, bool integers) {
  return {.inputs = {{}, {.low = low, .high = high, .integers = integers}}};
}
const CheckOptions mixed = with_indicators(0, 2, true), no_indicators = with_indicators(0, 1, true),
                   partly = with_indicators(0.5, 1, false);

TEST(Recurrent, GradientsEqualDifferences) {
  for (const Recurrence kind : {Recurrence::lstm, Recurrence::rnn}) {
    for (const RecurrentCase& one : {RecurrentCase{{4, 2, 3}, {}}, RecurrentCase{{2, 3, 2, 2}, {3, 2}},
                                     RecurrentCase{{3, 2, 2}, {2, 2, 3}}, RecurrentCase{{1, 1, 1}, {1}, 1}}) {
      EXPECT_TRUE(gradients_match_differences(recurrent_task(kind, one), mixed));
      EXPECT_TRUE(gradients_match_differences(recurrent_task(kind, one), partly));
    }
    EXPECT_TRUE(
        gradients_match_differences(recurrent_task(kind, {{3, 2, 2}, {2, 3}, 2, false}), no_indicators));
  }
}

TEST(Recurrent, ReadsItsSequencesAlone) {
  for (const Recurrence kind : {Recurrence::lstm, Recurrence::rnn}) {
    EXPECT_TRUE(input_boxes_hold(recurrent_task(kind, {{3, 4, 2}, {4, 2}}), false, mixed));
    EXPECT_TRUE(input_boxes_hold(recurrent_task(kind, {{2, 3, 2, 2}, {}}), false, partly));
  }
}

// What a kernel of float makes of a sequence given in batches of `steps`, with weights of its own.
class Sequence {
 public:
  static constexpr int64_t steps = 3, sequences = 2, features = 4, outputs = 5;

  Sequence(Recurrence kind, std::string kernels) : kind_(kind), kernels_(std::move(kernels)) {}

  // The outputs of all steps; `cont`: one indicator a step, of both sequences.
  std::vector<float> run(int64_t batch, const std::vector<float>& cont) const {
    const Task task = recurrent_task(kind_, {{batch, sequences, features}, {}, outputs, false}, Phase::test);
    const auto kernel = select_kernel(task, kernels_).kernel;
    TaskData<float> data(task, {.seed = 5});
    TaskBuffers<float> buffers(task, *kernel, data);
    const TaskData<float> whole(recurrent_task(kind_, {{steps, sequences, features}, {}, outputs, false}),
                                {.seed = 9});
    std::vector<float> all;
    for (int64_t t = 0; t < steps; t += batch) {
      const auto x = whole.inputs[0].begin() + t * sequences * features;
      buffers.inputs[0].set({x, x + batch * sequences * features});
      std::vector<float> indicators;
      for (int64_t step = t; step < t + batch; ++step)
        indicators.insert(indicators.end(), sequences, cont[step]);
      buffers.inputs[1].set(indicators);
      kernel->forward(buffers.arguments());
      const std::vector<float> y = buffers.outputs[0].values();
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  }

 private:
  Recurrence kind_;
  std::string kernels_;
};

// Caffe's TestForward: a batch of a step goes on where the last one ended, unless a sequence begins.
TEST(Recurrent, GoesOnFromBatchToBatch) {
  for (const Recurrence kind : {Recurrence::lstm, Recurrence::rnn}) {
    for (const char* kernels : {"native", "reference"}) {
      const Sequence sequence(kind, kernels);
      const std::vector<float> whole = sequence.run(Sequence::steps, {0, 1, 1});
      const std::vector<float> stepwise = sequence.run(1, {0, 1, 1}), apart = sequence.run(1, {0, 0, 0});
      const size_t first = whole.size() / Sequence::steps;
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_NEAR(stepwise[i], whole[i], 1e-6);
        EXPECT_EQ(std::abs(apart[i] - whole[i]) < 1e-6, i < first);
      }
      const std::vector<float> goes_on = sequence.run(1, {1, 1, 1});
      for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(goes_on[i], whole[i], 1e-6) << "it begins with 0";
    }
  }
}

// A step that runs again in an iteration goes on from where its first run did, not from where that ended.
TEST(Recurrent, RunsAgainFromTheSameStates) {
  for (const Recurrence kind : {Recurrence::lstm, Recurrence::rnn}) {
    for (const char* kernels : {"native", "reference"}) {
      const Task task = recurrent_task(kind, {{3, 2, 4}, {}, 5, false});
      const auto kernel = select_kernel(task, kernels).kernel;
      TaskBuffers<float> buffers(task, *kernel, TaskData<float>(task, partly));
      const auto outputs = [&](bool again) {
        ArgumentsOf<float> arguments = buffers.arguments();
        arguments.again = again;
        kernel->forward(arguments);
        return buffers.outputs[0].values();
      };
      outputs(false);
      const std::vector<float> second = outputs(false);
      EXPECT_EQ(outputs(true), second);
      EXPECT_EQ(outputs(true), second);
      EXPECT_NE(outputs(false), second);
    }
  }
}

// One unit, by hand: all weights and biases are 1.
TEST(Recurrent, LstmStepByHand) {
  LayerRun run(recurrent(Recurrence::lstm, 1), {{1, 1, 1}, {1, 1}}, 1);
  run.set_parameters(1);
  run.forward({{0.5}, {0}});
  const double gate = 1 / (1 + std::exp(-1.5)), cell = gate * std::tanh(1.5);
  EXPECT_TRUE(same(run.output(), {gate * std::tanh(cell)}));
  run.forward({{0.25}, {1}});
  const double sum = 1.25 + gate * std::tanh(cell), second = 1 / (1 + std::exp(-sum));
  EXPECT_TRUE(same(run.output(), {second * std::tanh(second * std::tanh(sum) + second * cell)}));
}

TEST(Recurrent, RnnStepByHand) {
  LayerRun run(recurrent(Recurrence::rnn, 1), {{1, 1, 1}, {1, 1}}, 1);
  run.set_parameters(1);
  run.forward({{0.5}, {0}});
  const double hidden = std::tanh(1.5);
  EXPECT_TRUE(same(run.output(), {std::tanh(hidden + 1)}));
  run.forward({{0.25}, {1}});
  EXPECT_TRUE(same(run.output(), {std::tanh(std::tanh(1.25 + hidden) + 1)}));
}

TEST(Recurrent, NativeEqualsReference) {
  for (const Recurrence kind : {Recurrence::lstm, Recurrence::rnn}) {
    for (const RecurrentCase& one :
         {RecurrentCase{{5, 3, 7}, {}, 6}, RecurrentCase{{2, 17, 5, 3}, {17, 4}, 9},
          RecurrentCase{{6, 1, 33}, {1}, 20}, RecurrentCase{{1, 8, 16}, {8, 3}, 16},
          RecurrentCase{{4, 9, 40}, {9, 64}, 33}}) {
      for (const Phase phase : {Phase::train, Phase::test}) {
        const Task task = recurrent_task(kind, one, phase);
        Selection selection = select_kernel(task);
        ASSERT_EQ(selection.implementation, "native");
        EXPECT_TRUE(matches_reference(task, *selection.kernel, 1e-5, mixed));
        EXPECT_TRUE(matches_reference(task, *selection.kernel, 1e-5, partly));
      }
      Task without_data = recurrent_task(kind, one);
      std::fill(without_data.input_gradients.begin(), without_data.input_gradients.end(), false);
      EXPECT_TRUE(matches_reference(without_data, *select_kernel(without_data).kernel, 1e-5, mixed));
      Task frozen = recurrent_task(kind, one);
      std::fill(frozen.parameter_gradients.begin(), frozen.parameter_gradients.end(), false);
      EXPECT_TRUE(matches_reference(frozen, *select_kernel(frozen).kernel, 1e-5, mixed));
    }
  }
  const Task three_axes = recurrent_task(Recurrence::lstm, {{2, 3, 4}, {3, 2, 2}});
  EXPECT_EQ(select_kernel(three_axes).implementation, "reference");
}

// An output whose gradient is null counts as one of zeros.
TEST(Recurrent, OutputsMayHaveNoGradient) {
  const Task task = recurrent_task(Recurrence::lstm, {{3, 2, 4}, {}, 5});
  for (const char* name : {"native", "reference"}) {
    const auto kernel = select_kernel(task, name).kernel;
    TaskBuffers<float> buffers(task, *kernel, TaskData<float>(task, mixed));
    for (size_t k = 1; k < 3; ++k) buffers.output_gradients[k].set(std::vector<float>(10, 0));
    const auto gradients = [&](ArgumentsOf<float> arguments) {
      kernel->forward(arguments);
      kernel->backward(arguments);
      return buffers.parameter_gradients[0].values();
    };
    const std::vector<float> zeros = gradients(buffers.arguments());
    ArgumentsOf<float> nulls = buffers.arguments();
    nulls.output_gradients[1] = nulls.output_gradients[2] = nullptr;
    EXPECT_EQ(gradients(nulls), zeros);
  }
}

}  // namespace
}  // namespace cortado::check
