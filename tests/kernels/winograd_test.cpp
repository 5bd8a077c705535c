// Winograd's convolutions against the naive reference: random shapes on small integers (F(2x2, 3x3): bitwise)
// and on reals, and their errors against the reference in double.
#include "cortado/kernels/winograd/winograd.h"

#include <cmath>
#include <fmt/format.h>

#include "cortado/kernels/lowering/problem.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/bf16_product.h"
#include "tests/kernels/buffers.h"
#include "tests/kernels/draw.h"

namespace cortado {
namespace {

using check::Buffer;
using check::DataKind;
using check::matches_reference;
using check::TaskBuffers;
using check::TaskData;

using check::Draw;

std::string text_of(const Task& task) {
  const auto& options = dynamic_cast<const Convolution&>(task.layer()).options();
  return fmt::format("{} to {} groups {} pad [{}] bias {} chain {} box {}", task.inputs[0].text(),
                     options.num_output, options.group, fmt::join(options.pad, ","), options.bias_term,
                     task.layers.size(), task.output_boxes[0].text());
}

Task convolution(const Shape& input, const ConvolutionOptions& options) {
  return whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
}

// Cuts the output along samples and space, perhaps to nothing, and gives the input box that part needs.
void cut(Draw& draw, Task& task) {
  Box& box = task.output_boxes[0];
  for (int axis : {0, 2, 3}) {
    const int64_t extent = task.outputs[0][axis], begin = draw(0, extent - 1);
    box[axis] = {begin, draw(begin + (draw.chance(5) ? 0 : 1), extent)};
  }
  task.input_boxes[0] = task.layer().input_box(task.inputs, 0, 0, box);
}

Task random_task(Draw& draw, int64_t taps = 3) {
  const int64_t groups = draw.chance(25) ? draw(2, 3) : 1;
  ConvolutionOptions options{.num_output = groups * draw(1, 70 / groups),
                             .bias_term = draw.chance(70),
                             .group = groups,
                             .kernel = {taps}};
  options.pad = {draw(0, taps - 1), draw(0, taps - 1)};
  const Shape input{draw(1, 4), groups * draw(1, 60 / groups),
                    std::max<int64_t>(1, taps - 2 * options.pad[0]) + draw(0, 13),
                    std::max<int64_t>(1, taps - 2 * options.pad[1]) + draw(0, 13)};
  Task task = convolution(input, options);
  if (draw.chance(40))
    task.layers.push_back(std::make_shared<Pointwise>(ReluOptions{draw.chance(50) ? 0.0 : 0.5}));
  if (draw.chance(15)) task.input_gradients[0] = false;
  if (draw.chance(15)) task.parameter_gradients.assign(task.parameter_gradients.size(), false);
  if (draw.chance(10)) task.parameter_gradients[0] = false;
  if (draw.chance(40)) cut(draw, task);
  task.canonical_parameters = draw.chance(15);
  return task;
}

// A way to compute, and how far from the result in double it may be.
struct Filtering {
  const char* name;
  KernelOffer (*make)(const Task&);
  double bound;
  int64_t taps = 3;
};
constexpr Filtering filterings[] = {{"F(2x2, 3x3)", make_winograd_of_any_size, 4e-6},
                                    {"F(4x4, 3x3)", make_winograd_4x4_of_any_size, 4e-5},
                                    {"F(2x2, 5x5)", make_winograd_5x5_of_any_size, 4e-5, 5}};

// The largest error, relative to the largest element.
double error_of(const std::vector<double>& expected, const std::vector<float>& actual) {
  double error = 0, largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(actual[i] - expected[i]);
    error = std::isnan(difference) ? HUGE_VAL : std::max(error, difference);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return largest > 0 ? error / largest : error;
}

// The slope of the ReLU after the convolution; 1 where there is none.
double slope_of(const Task& task) {
  std::string refusal;
  const auto tail = lowering::chain_tail(task, refusal);
  return tail->rectify ? tail->slope : 1;
}

// The passes of a kernel on random operands.
struct Run {
  Run(const Task& task, Kernel& kernel)
      : data(task, {}), format(kernel.parameter_format(0)), buffers(task, kernel, data) {
    buffers.parameters[0] = Buffer<float>(format.elements);
    buffers.parameter_gradients[0] = Buffer<float>(format.elements);
    format.from_canonical(data.parameters[0].data(), buffers.parameters[0].data());
    kernel.forward(buffers.arguments());
    kernel.backward_weights(buffers.arguments());
    kernel.backward(buffers.arguments());
  }
  std::vector<float> weight_gradient() const {
    std::vector<float> canonical(data.parameters[0].size());
    format.to_canonical(buffers.parameter_gradients[0].data(), canonical.data());
    return canonical;
  }

  TaskData<float> data;
  ParameterFormat format;
  TaskBuffers<float> buffers;
};

template <typename From>
std::vector<double> in_double(const From& from) {
  return {from.begin(), from.end()};
}

// The same in double by the reference. The ReLU is done here: its gradient is masked by what `run` put out,
// so that no sum near zero is told apart.
struct Expected {
  Expected(const Task& task, const Run& run) {
    Task sum = task;
    sum.layers.resize(1);
    const double slope = slope_of(task);
    const auto kernel = make_reference_kernel<double>(sum);
    TaskData<double> data(sum, {});
    data.inputs[0] = in_double(run.data.inputs[0]);
    for (size_t p = 0; p < data.parameters.size(); ++p)
      data.parameters[p] = in_double(run.data.parameters[p]);
    data.output_gradients[0] = in_double(run.data.output_gradients[0]);
    for (int64_t i = 0; i < run.buffers.outputs[0].size(); ++i)
      if (run.buffers.outputs[0].data()[i] <= 0) data.output_gradients[0][i] *= slope;
    TaskBuffers<double> buffers(sum, *kernel, data);
    kernel->forward(buffers.arguments());
    kernel->backward_weights(buffers.arguments());
    kernel->backward(buffers.arguments());
    output = buffers.outputs[0].values();
    for (double& value : output) value *= value < 0 ? slope : 1;
    input_gradient = buffers.input_gradients[0].values();
    for (const auto& gradient : buffers.parameter_gradients) parameter_gradients.push_back(gradient.values());
  }
  std::vector<double> output, input_gradient;
  std::vector<std::vector<double>> parameter_gradients;
};

void expect_within_bound(const Task& task, const Filtering& filtering) {
  const KernelOffer offer = filtering.make(task);
  ASSERT_TRUE(offer.kernel) << text_of(task) << ": " << offer.refusal;
  const Run run(task, *offer.kernel);
  const Expected expected(task, run);
  const std::string what = fmt::format("{} of {}", filtering.name, text_of(task));
  EXPECT_LE(error_of(expected.output, run.buffers.outputs[0].values()), filtering.bound) << what;
  if (task.input_gradients[0]) {
    EXPECT_LE(error_of(expected.input_gradient, run.buffers.input_gradients[0].values()), filtering.bound)
        << what;
  }
  if (task.parameter_gradients[0]) {
    EXPECT_LE(error_of(expected.parameter_gradients[0], run.weight_gradient()), filtering.bound) << what;
  }
  if (task.parameter_gradients.size() > 1 && task.parameter_gradients[1]) {
    EXPECT_LE(error_of(expected.parameter_gradients[1], run.buffers.parameter_gradients[1].values()),
              filtering.bound)
        << what;
  }
}

TEST(Winograd, HoldsItsErrorBound) {
  for (unsigned seed = 0; seed < 80 && !::testing::Test::HasFailure(); ++seed)
    for (const Filtering& filtering : filterings) {
      Draw draw(seed);
      Task task = random_task(draw, filtering.taps);
      task.canonical_parameters = false;
      expect_within_bound(task, filtering);
    }
}

// Sizes past every block: of depth, of tiles, of image channels.
const std::vector<std::pair<Shape, int64_t>> large_cases = {{{1, 1300, 5, 5}, 20}, {{2, 70, 40, 40}, 34},
                                                            {{1, 100, 9, 9}, 140}, {{30, 16, 18, 18}, 16},
                                                            {{6, 17, 40, 40}, 19}, {{1, 20, 48, 48}, 150}};

TEST(Winograd, HoldsItsErrorBoundWhereLarge) {
  for (const auto& [input, outputs] : large_cases)
    for (const Filtering& filtering : filterings)
      expect_within_bound(
          convolution(input,
                      {.num_output = outputs, .kernel = {filtering.taps}, .pad = {filtering.taps / 2}}),
          filtering);
  // Enough tiles of 4x4 for sums of each thread's own.
  expect_within_bound(convolution({8, 16, 64, 64}, {.num_output = 17, .kernel = {3}, .pad = {1}}),
                      filterings[1]);
}

// What a kernel promises beside its results. A ReLU would tell sums near zero apart, which filterings of
// larger errors round otherwise.
TEST(Winograd, KeepsItsPromisesWithLargerErrors) {
  for (unsigned seed = 0; seed < 60; ++seed)
    for (const Filtering& filtering : {filterings[1], filterings[2]}) {
      Draw draw(seed);
      Task task = random_task(draw, filtering.taps);
      task.layers.resize(1);
      const KernelOffer offer = filtering.make(task);
      ASSERT_TRUE(offer.kernel) << text_of(task) << ": " << offer.refusal;
      ASSERT_TRUE(matches_reference(task, *offer.kernel, 1e-4, DataKind::random))
          << filtering.name << ", case " << seed << ": " << text_of(task);
    }
}

TEST(Winograd, MatchesReference) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    const Task task = random_task(draw);
    const KernelOffer offer = make_winograd_of_any_size(task);
    ASSERT_TRUE(offer.kernel) << text_of(task) << ": " << offer.refusal;
    ASSERT_TRUE(seed % 2 == 0 ? matches_reference(task, *offer.kernel, 0, DataKind::small_integers)
                              : matches_reference(task, *offer.kernel, 1e-5, DataKind::random))
        << "case " << seed << ": " << text_of(task);
  }
}

// Tensors in bf16, both or one of the two: what is transformed and summed is float.
TEST(Winograd, MatchesReferenceInBf16) {
  const std::vector<std::pair<ElementType, ElementType>> types = {{ElementType::bf16, ElementType::bf16},
                                                                  {ElementType::bf16, ElementType::f32},
                                                                  {ElementType::f32, ElementType::bf16}};
  for (unsigned seed = 0; seed < 150; ++seed)
    for (const Filtering& filtering : filterings) {
      Draw draw(seed);
      Task task = random_task(draw, filtering.taps);
      task.input_types = {types[seed % 3].first};
      task.output_types = {types[seed % 3].second};
      if (task.layers.size() > 1) task.layers[1] = std::make_shared<Pointwise>(ReluOptions{});
      const KernelOffer offer = filtering.make(task);
      ASSERT_TRUE(offer.kernel) << text_of(task) << ": " << offer.refusal;
      const bool exact = filtering.make == make_winograd_of_any_size && seed % 2 == 0;
      ASSERT_TRUE(matches_in_bf16(task, *offer.kernel, exact ? 0 : 1e-4,
                                  exact ? DataKind::small_integers : DataKind::random, true))
          << filtering.name << ", case " << seed << ": " << text_of(task);
    }
}

TEST(Winograd, MatchesReferenceWhereLarge) {
  for (const auto& [input, outputs] : large_cases) {
    const Task task = convolution(input, {.num_output = outputs, .kernel = {3}, .pad = {1}});
    const KernelOffer offer = make_winograd_of_any_size(task);
    ASSERT_TRUE(offer.kernel) << offer.refusal;
    EXPECT_TRUE(matches_reference(task, *offer.kernel, 0, DataKind::small_integers)) << text_of(task);
  }
}

TEST(Winograd, KeepsThePrecisionOfLongSums) {
  const Task task = convolution({2, 48, 56, 56}, {.num_output = 48, .kernel = {3}, .pad = {1}});
  EXPECT_TRUE(matches_reference(task, *make_winograd(task).kernel, 1e-5, DataKind::random));
}

TEST(Winograd, RefusesWithAReason) {
  const auto refusal = [](const ConvolutionOptions& options, const Shape& input = {2, 32, 16, 16}) {
    return make_winograd(convolution(input, options)).refusal;
  };
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}}), "");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {5}}), "windows other than 3x3 with stride 1");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}, .stride = {2}}),
            "windows other than 3x3 with stride 1");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}, .dilation = {2}}),
            "windows other than 3x3 with stride 1");
  EXPECT_EQ(refusal({.num_output = 64, .group = 2, .kernel = {3}}, {8, 64, 16, 16}), "");
  EXPECT_EQ(refusal({.num_output = 32, .group = 2, .kernel = {3}}),
            __builtin_cpu_supports("avx512f") ? "16 channels are too few" : "");
  EXPECT_EQ(refusal({.num_output = 32, .group = 4, .kernel = {3}}), "8 channels are too few");
  EXPECT_EQ(refusal({.num_output = 15, .kernel = {3}}), "15 channels are too few");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}}, {2, 3, 16, 16}), "3 channels are too few");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}, .pad = {1}}, {1, 32, 8, 8}),
            "16 tiles of 2x2 windows are too few");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}, .pad = {1}}, {16, 32, 3, 3}),
            "3x3 windows waste tiles of 2x2");
  EXPECT_EQ(make_winograd(whole_task(std::make_shared<Pointwise>(ReluOptions{}), Phase::train,
                                     std::vector<Shape>{{2, 32, 16, 16}}, 1))
                .refusal,
            "ReLU is no convolution");
}

TEST(Winograd, RefusesTilesOf4x4WithAReason) {
  const auto refusal = [](const ConvolutionOptions& options, const Shape& input) {
    return make_winograd_4x4(convolution(input, options)).refusal;
  };
  const ConvolutionOptions three{.num_output = 32, .kernel = {3}, .pad = {1}};
  EXPECT_EQ(refusal(three, {2, 32, 16, 16}), "");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {5}}, {2, 32, 16, 16}),
            "windows other than 3x3 with stride 1");
  EXPECT_EQ(refusal(three, {2, 15, 16, 16}), "15 channels are too few");
  EXPECT_EQ(refusal(three, {1, 32, 16, 16}), "16 tiles of 4x4 windows are too few");
  EXPECT_EQ(refusal(three, {64, 32, 5, 5}), "5x5 windows waste tiles of 4x4");
}

TEST(Winograd, RefusesWindowsOf5x5WithAReason) {
  const auto refusal = [](const ConvolutionOptions& options, const Shape& input = {2, 32, 16, 16}) {
    return make_winograd_5x5(convolution(input, options)).refusal;
  };
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {5}, .pad = {2}}), "");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}}), "windows other than 5x5 with stride 1");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {5}, .stride = {2}}),
            "windows other than 5x5 with stride 1");
  EXPECT_EQ(refusal({.num_output = 15, .kernel = {5}}), "15 channels are too few");
}

}  // namespace
}  // namespace cortado
