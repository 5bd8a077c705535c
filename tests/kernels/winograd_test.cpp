// The matrices of Winograd's filterings, derived from their points. Winograd's convolutions against the naive
// reference: random shapes on small integers (F(2x2, 3x3): bitwise) and on reals, and their errors against
// the reference in double.
#include "cortado/kernels/winograd/winograd.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <span>

#include "cortado/kernels/lowering/implicit_gemm.h"
#include "cortado/kernels/lowering/problem.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/winograd/transforms.h"
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

using Matrix = std::vector<std::vector<double>>;

// The matrix of a transform of lines.
template <int from, int to, winograd::Line<to> (*line)(const winograd::Line<from>&)>
Matrix matrix_of() {
  Matrix matrix(to, std::vector<double>(from));
  for (int j = 0; j < from; ++j) {
    winograd::Line<from> unit{};
    unit[j] += 1.0f;
    const winograd::Line<to> column = line(unit);
    for (int i = 0; i < to; ++i) matrix[i][j] = column[i][0];
  }
  return matrix;
}

Matrix transposed(const Matrix& matrix) {
  Matrix result(matrix[0].size(), std::vector<double>(matrix.size()));
  for (size_t i = 0; i < matrix.size(); ++i)
    for (size_t j = 0; j < matrix[i].size(); ++j) result[j][i] = matrix[i][j];
  return result;
}

// The finite points of a line of `span`; the last row of a matrix is infinity's.
std::vector<double> points_of(int span) {
  const double root = std::sqrt(2.0);
  if (span == 6) return {0, 1 / root, -1 / root, root, -root};
  const double points[] = {0, 1, -1, 2, -2, 0.5, -0.5};
  return {points, points + span - 1};
}

// Powers of the points below `count`; of infinity, the highest alone.
Matrix powers_of_points(int span, int count) {
  Matrix rows;
  for (const double x : points_of(span)) {
    rows.emplace_back();
    for (int i = 0; i < count; ++i) rows.back().push_back(std::pow(x, i));
  }
  rows.emplace_back(count);
  rows.back().back() = 1;
  return rows;
}

// The product of x less each finite point but that of row `but`, by powers of x.
std::vector<double> vanishing(int span, int but) {
  std::vector<double> polynomial(span);
  polynomial[0] = 1;
  const std::vector<double> points = points_of(span);
  for (int k = 0; k < span - 1; ++k)
    for (int i = span - 1; k != but && i >= 0; --i)
      polynomial[i] = (i > 0 ? polynomial[i - 1] : 0) - points[k] * polynomial[i];
  return polynomial;
}

// The powers of the points over the products of their differences from the others.
Matrix filter_matrix(int span, int taps) {
  Matrix rows = powers_of_points(span, taps);
  const std::vector<double> points = points_of(span);
  for (int k = 0; k < span - 1; ++k) {
    double product = 1;
    for (int other = 0; other < span - 1; ++other)
      if (other != k) product *= points[k] - points[other];
    for (double& value : rows[k]) value /= product;
  }
  return rows;
}

// But for what a float rounds.
void expect_equal(const Matrix& actual, const Matrix& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    for (size_t j = 0; j < expected[i].size(); ++j)
      EXPECT_NEAR(actual[i][j], expected[i][j], 1e-6 * std::max(1.0, std::abs(expected[i][j])))
          << i << ", " << j;
}

template <typename F>
class WinogradMatrices : public testing::Test {};
using Filterings = testing::Types<winograd::F2x2, winograd::F4x4, winograd::F2x2Of5x5, winograd::F4x4Of5x5>;
TYPED_TEST_SUITE(WinogradMatrices, Filterings);

template <typename F>
struct Matrices {
  Matrix image = matrix_of<F::span, F::span, F::image>();
  Matrix filter = matrix_of<F::taps, F::span, F::filter>();
  Matrix finish_windows = matrix_of<F::span, F::windows, F::finish_windows>();
  Matrix gradient = matrix_of<F::windows, F::span, F::gradient>();
  Matrix finish_filter = matrix_of<F::span, F::taps, F::finish_filter>();
};

TYPED_TEST(WinogradMatrices, FollowFromTheirPoints) {
  using F = TypeParam;
  const Matrices<F> matrices;
  Matrix image;
  for (int k = 0; k < F::span; ++k) image.push_back(vanishing(F::span, k));
  expect_equal(matrices.image, image);
  expect_equal(matrices.filter, filter_matrix(F::span, F::taps));
  expect_equal(matrices.gradient, powers_of_points(F::span, F::windows));
  EXPECT_EQ(transposed(matrices.finish_windows), matrices.gradient);
  expect_equal(transposed(matrices.finish_filter), matrices.filter);
}

// Window i is the sum over taps j of image position i + j times tap j, and nothing else.
TYPED_TEST(WinogradMatrices, MakeAConvolution) {
  using F = TypeParam;
  const Matrices<F> matrices;
  for (int i = 0; i < F::windows; ++i)
    for (int j = 0; j < F::taps; ++j)
      for (int position = 0; position < F::span; ++position) {
        double factor = 0;
        for (int k = 0; k < F::span; ++k)
          factor += matrices.finish_windows[i][k] * matrices.filter[k][j] * matrices.image[k][position];
        EXPECT_NEAR(factor, position == i + j, 1e-5) << i << ", " << j << ", " << position;
      }
}

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
constexpr Filtering filterings[] = {{"F(2x2, 3x3)", make_winograd_of_any_size, 2e-6},
                                    {"F(4x4, 3x3)", make_winograd_4x4_of_any_size, 4e-6},
                                    {"F(2x2, 5x5)", make_winograd_5x5_of_any_size, 6e-6, 5},
                                    {"F(4x4, 5x5)", make_winograd_4x4_of_5x5_of_any_size, 3e-5, 5}};

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

void expect_within_bound(const Task& task, const Filtering& filtering, const Run& run,
                         const Expected& expected) {
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

void expect_within_bound(const Task& task, const Filtering& filtering) {
  const KernelOffer offer = filtering.make(task);
  ASSERT_TRUE(offer.kernel) << text_of(task) << ": " << offer.refusal;
  const Run run(task, *offer.kernel);
  expect_within_bound(task, filtering, run, Expected(task, run));
}

// The largest error of the passes.
double error_of_passes(const Run& run, const Expected& expected) {
  return std::max({error_of(expected.output, run.buffers.outputs[0].values()),
                   error_of(expected.input_gradient, run.buffers.input_gradients[0].values()),
                   error_of(expected.parameter_gradients[0], run.weight_gradient())});
}

// So they need not be asked for.
TEST(Winograd, LosesNoMoreThanTwiceWhatDirectSumsLose) {
  const std::vector<std::pair<Shape, int64_t>> cases = {
      {{4, 64, 28, 28}, 64}, {{2, 256, 14, 14}, 64}, {{1, 512, 14, 14}, 64}, {{2, 64, 14, 14}, 512}};
  for (const auto& [input, outputs] : cases)
    for (const Filtering& filtering : std::span(filterings).first(3)) {
      const Task task = convolution(
          input, {.num_output = outputs, .kernel = {filtering.taps}, .pad = {filtering.taps / 2}});
      const auto direct = make_implicit_gemm(task), winograd = filtering.make(task);
      ASSERT_TRUE(direct.kernel && winograd.kernel) << direct.refusal << winograd.refusal;
      const cortado::Run sums(task, *direct.kernel), run(task, *winograd.kernel);
      const Expected expected(task, sums);
      EXPECT_LE(error_of_passes(run, expected), 2 * error_of_passes(sums, expected))
          << filtering.name << " of " << text_of(task);
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
  for (const auto& [input, outputs] : large_cases) {
    std::map<int64_t, Expected> expected;  // by taps: without a ReLU it is the same whatever the filtering
    for (const Filtering& filtering : filterings) {
      const Task task = convolution(
          input, {.num_output = outputs, .kernel = {filtering.taps}, .pad = {filtering.taps / 2}});
      const KernelOffer offer = filtering.make(task);
      ASSERT_TRUE(offer.kernel) << text_of(task) << ": " << offer.refusal;
      const cortado::Run run(task, *offer.kernel);
      expect_within_bound(task, filtering, run,
                          expected.try_emplace(filtering.taps, task, run).first->second);
    }
  }
  // Filters of 35 MB, which are transformed in two chunks, of one group and of two.
  for (const int64_t groups : {1, 2})
    expect_within_bound(convolution({1, 640 * groups, 6, 6},
                                    {.num_output = 384 * groups, .group = groups, .kernel = {3}, .pad = {1}}),
                        filterings[1]);
  // Enough tiles of 4x4 for sums of each thread's own.
  expect_within_bound(convolution({8, 16, 64, 64}, {.num_output = 17, .kernel = {3}, .pad = {1}}),
                      filterings[1]);
}

// What a kernel promises beside its results. A ReLU would tell sums near zero apart, which filterings of
// larger errors round otherwise.
TEST(Winograd, KeepsItsPromisesWithLargerErrors) {
  for (unsigned seed = 0; seed < 60; ++seed)
    for (const Filtering& filtering : std::span(filterings).subspan(1)) {
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
  for (unsigned seed = 0; seed < 60; ++seed)
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

TEST(Winograd, CarriesInBf16WhatIsNotFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const Filtering& filtering : filterings) {
    Task task = convolution({2, 3, 9, 8}, {.num_output = 5, .kernel = {filtering.taps}, .pad = {1}});
    task.input_types = task.output_types = {ElementType::bf16};
    const KernelOffer offer = filtering.make(task);
    ASSERT_TRUE(offer.kernel) << offer.refusal;
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity})
      EXPECT_TRUE(check::carries_in_bf16(task, *offer.kernel, value)) << filtering.name;
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
  const ConvolutionOptions five{.num_output = 32, .kernel = {5}, .pad = {2}};
  for (const auto make : {make_winograd_5x5, make_winograd_4x4_of_5x5}) {
    const auto refusal = [&](const ConvolutionOptions& options, const Shape& input = {2, 32, 16, 16}) {
      return make(convolution(input, options)).refusal;
    };
    EXPECT_EQ(refusal(five), "");
    EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}}), "windows other than 5x5 with stride 1");
    EXPECT_EQ(refusal({.num_output = 32, .kernel = {5}, .stride = {2}}),
              "windows other than 5x5 with stride 1");
    EXPECT_EQ(refusal({.num_output = 15, .kernel = {5}}), "15 channels are too few");
  }
  EXPECT_EQ(make_winograd_4x4_of_5x5(convolution({64, 32, 5, 5}, five)).refusal,
            "5x5 windows waste tiles of 4x4");
}

}  // namespace
}  // namespace cortado
