// Forward values of the reference kernels against values worked out otherwise: by hand, by the plain formula
// on one sample, or by a property that defines the layer.
#include <cmath>
#include <limits>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/spp.h"

#include "tests/kernels/buffers.h"

namespace cortado::check {
namespace {

// A whole layer with its memory; values in and out are row-major in spoken order, as Caffe lays them out.
class Layered {
 public:
  Layered(LayerPtr layer, Phase phase, Shape input, int outputs = 1)
      : task_(whole_task(std::move(layer), phase, {&input, 1}, outputs)),
        kernel_(make_reference_kernel<double>(task_)),
        buffers_(task_, *kernel_, TaskData<double>(task_, {})) {}

  std::vector<double> forward(const std::vector<double>& spoken, int output = 0) {
    Place place = tensor_place(task_.input_boxes[0]);
    for_each_index(place.box(), [&](const Index& index) {
      buffers_.inputs[0].data()[place(index)] = spoken[spoken_number(task_.inputs[0], index)];
    });
    kernel_->forward(buffers_.arguments());
    Place out = tensor_place(task_.output_boxes[output]);
    std::vector<double> result;
    for_each_index(out.box(), [&](const Index& index) {
      result.push_back(buffers_.outputs[output].data()[out(index)]);
    });
    return result;
  }

  // The gradient of the input, after forward().
  std::vector<double> backward(const std::vector<double>& spoken) {
    Place out = tensor_place(task_.output_boxes[0]);
    for_each_index(out.box(), [&](const Index& index) {
      buffers_.output_gradients[0].data()[out(index)] = spoken[spoken_number(task_.outputs[0], index)];
    });
    kernel_->backward(buffers_.arguments());
    Place place = tensor_place(task_.input_boxes[0]);
    std::vector<double> result;
    for_each_index(place.box(), [&](const Index& index) {
      result.push_back(buffers_.input_gradients[0].data()[place(index)]);
    });
    return result;
  }

  TaskBuffers<double>& memory() { return buffers_; }

 private:
  Task task_;
  std::unique_ptr<KernelOf<double>> kernel_;
  TaskBuffers<double> buffers_;
};

std::vector<double> counting(int64_t size, double first = 1) {
  std::vector<double> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = first + i;
  return values;
}

std::vector<double> varied(int64_t size) {
  std::vector<double> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = std::sin(1.7 * i) + 0.01 * i;
  return values;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                 double tolerance = 1e-12) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
}

TEST(ReferenceValues, ConvolutionIsThePlainSum) {
  // One sample, two groups, H and W with their own stride, pad and dilation; loops over row-major arrays.
  const int C = 4, H = 7, W = 8, O = 6, G = 2, KH = 3, KW = 2, SH = 2, SW = 1, PH = 1, PW = 2, DH = 1, DW = 3;
  Layered layer(std::make_shared<Convolution>(ConvolutionOptions{.num_output = O,
                                                                 .group = G,
                                                                 .kernel = {KH, KW},
                                                                 .stride = {SH, SW},
                                                                 .pad = {PH, PW},
                                                                 .dilation = {DH, DW}}),
                Phase::train, {1, C, H, W});
  auto x = varied(C * H * W), w = varied(O * C / G * KH * KW), b = counting(O);
  layer.memory().parameters[0].set(w);
  layer.memory().parameters[1].set(b);
  std::vector<double> expected;
  for (int o = 0; o < O; ++o) {
    for (int top = -PH; top + DH * (KH - 1) < H + PH; top += SH) {
      for (int left = -PW; left + DW * (KW - 1) < W + PW; left += SW) {
        double sum = b[o];
        for (int c = 0; c < C / G; ++c) {
          for (int kh = 0; kh < KH; ++kh) {
            for (int kw = 0; kw < KW; ++kw) {
              int h = top + kh * DH, v = left + kw * DW;
              if (h < 0 || h >= H || v < 0 || v >= W) continue;
              sum +=
                  w[((o * C / G + c) * KH + kh) * KW + kw] * x[((o / (O / G) * (C / G) + c) * H + h) * W + v];
            }
          }
        }
        expected.push_back(sum);
      }
    }
  }
  expect_near(layer.forward(x), expected);
}

TEST(ReferenceValues, InnerProductSumsInFileOrder) {
  Layered layer(std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 1}), Phase::train,
                {1, 2, 2, 2});
  layer.memory().parameters[0].set({1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7});
  layer.memory().parameters[1].set({0.5});
  expect_near(layer.forward({1, 2, 3, 4, 5, 6, 7, 8}), {87654321.5});
}

TEST(ReferenceValues, MaxPoolingAndItsMask) {
  Layered layer(std::make_shared<Pooling>(PoolingOptions{.kernel = {2}}), Phase::train, {1, 1, 3, 5}, 2);
  std::vector<double> x{1, 2, 5, 2, 3, 9, 4, 1, 4, 8, 1, 2, 5, 2, 3};
  expect_near(layer.forward(x), {9, 5, 5, 8, 9, 5, 5, 8});
  expect_near(layer.forward(x, 1), {5, 2, 2, 9, 5, 12, 12, 9});
}

// Caffe's values of windows that start outside the input: the lowest float and index -1, or 0 as an average.
TEST(ReferenceValues, PoolingOfWindowsOutsideTheImage) {
  const double lowest = -std::numeric_limits<float>::max();
  Layered max(std::make_shared<Pooling>(PoolingOptions{.kernel = {1}, .stride = {2}}), Phase::train,
              {1, 1, 2, 4}, 2);
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8};
  expect_near(max.forward(x), {1, 3, lowest, lowest, lowest, lowest});
  expect_near(max.forward(x, 1), {0, 2, -1, -1, -1, -1});
  expect_near(max.backward({10, 20, 30, 40, 50, 60}), {10, 0, 20, 0, 0, 0, 0, 0});
  Layered average(std::make_shared<Pooling>(PoolingOptions{
                      .method = PoolingOptions::Method::average, .kernel = {1}, .stride = {3}}),
                  Phase::train, {1, 1, 2, 4});
  expect_near(average.forward(x), {1, 4, 0, 0});
  expect_near(average.backward({10, 20, 30, 40}), {10, 0, 0, 20, 0, 0, 0, 0});
}

TEST(ReferenceValues, MaxPoolingDoesNotHideNan) {
  Layered layer(std::make_shared<Pooling>(PoolingOptions{.kernel = {3}}), Phase::train, {1, 1, 3});
  for (int at = 0; at < 3; ++at) {
    std::vector<double> x{1, 2, 3};
    x[at] = NAN;
    EXPECT_TRUE(std::isnan(layer.forward(x)[0]));
  }
}

TEST(ReferenceValues, AveragePoolingDividesByThePaddedWindow) {
  Layered layer(std::make_shared<Pooling>(PoolingOptions{
                    .method = PoolingOptions::Method::average, .kernel = {3}, .stride = {1}, .pad = {1}}),
                Phase::train, {1, 1, 3, 3});
  const double ninth = 1.0 / 9;
  expect_near(layer.forward(std::vector<double>(9, 2.0)), {8 * ninth, 12 * ninth, 8 * ninth, 12 * ninth, 2,
                                                           12 * ninth, 8 * ninth, 12 * ninth, 8 * ninth});
  // Rounded up: the last window covers 4 and 5 of a padded image that ends at 5: two positions, one in the
  // image.
  Layered last(std::make_shared<Pooling>(PoolingOptions{
                   .method = PoolingOptions::Method::average, .kernel = {3}, .stride = {2}, .pad = {1}}),
               Phase::train, {1, 1, 4});
  expect_near(last.forward({3, 6, 9, 12}), {(3.0 + 6) / 3, (6.0 + 9 + 12) / 3, 12.0 / 2});
}

TEST(ReferenceValues, StochasticPoolingDrawsByShareAndTestsTheExpectation) {
  PoolingOptions options{.method = PoolingOptions::Method::stochastic, .kernel = {2}, .stride = {2}};
  const int64_t windows = 4000;
  std::vector<double> x;
  for (int64_t i = 0; i < windows; ++i) x.insert(x.end(), {1.0, 3.0});
  Layered train(std::make_shared<Pooling>(options), Phase::train, {1, 1, 2 * windows});
  double sum = 0;
  for (double y : train.forward(x)) sum += y;
  EXPECT_NEAR(sum / windows, 2.5, 5 * std::sqrt(0.75 / windows));
  Layered test(std::make_shared<Pooling>(options), Phase::test, {1, 1, 4});
  expect_near(test.forward({1, 3, 0, 0}), {2.5, 0});
}

TEST(ReferenceValues, LrnAcrossAndWithinChannels) {
  LrnOptions options{.local_size = 3, .alpha = 0.6, .beta = 0.75, .k = 2};
  Layered across(std::make_shared<Lrn>(options), Phase::train, {1, 4, 1, 1});
  auto normalized = [](double x, double s) { return x * std::pow(s, -0.75); };
  expect_near(across.forward({1, 2, 3, 4}), {normalized(1, 2 + 0.2 * 5), normalized(2, 2 + 0.2 * 14),
                                             normalized(3, 2 + 0.2 * 29), normalized(4, 2 + 0.2 * 25)});
  options.region = LrnOptions::Region::within_channel;  // its k is 1
  Layered within(std::make_shared<Lrn>(options), Phase::train, {1, 1, 2, 2});
  double s = 1 + 0.6 * (1 + 4 + 9 + 16) / 9;
  expect_near(within.forward({1, 2, 3, 4}),
              {normalized(1, s), normalized(2, s), normalized(3, s), normalized(4, s)});
}

TEST(ReferenceValues, BatchNormKeepsUnbiasedRunningStatistics) {
  BatchNormOptions options{.moving_average_fraction = 0.9, .eps = 1e-9};
  Layered layer(std::make_shared<BatchNorm>(options), Phase::train, {2, 1, 2});
  layer.memory().parameters[0].set({10});
  layer.memory().parameters[1].set({20});
  layer.memory().parameters[2].set({2});
  double deviation = std::sqrt(5.0);
  expect_near(layer.forward({1, 3, 5, 7}), {-3 / deviation, -1 / deviation, 1 / deviation, 3 / deviation},
              1e-8);
  expect_near(layer.memory().parameters[0].values(), {0.9 * 10 + 4});
  expect_near(layer.memory().parameters[1].values(), {0.9 * 20 + 5.0 * 4 / 3});
  expect_near(layer.memory().parameters[2].values(), {0.9 * 2 + 1});

  Layered test(std::make_shared<BatchNorm>(options), Phase::test, {2, 1, 2});
  test.memory().parameters[0].set({10});
  test.memory().parameters[1].set({32});
  test.memory().parameters[2].set({2});
  expect_near(test.forward({1, 5, 9, 13}), {-1, 0, 1, 2}, 1e-8);
  expect_near(test.memory().parameters[2].values(), {2});
}

TEST(ReferenceValues, DropoutKeepsItsShareAndTestsTheIdentity) {
  const int64_t size = 20000;
  Layered train(std::make_shared<Dropout>(DropoutOptions{.ratio = 0.3}), Phase::train, {1, size});
  int64_t kept = 0;
  for (double y : train.forward(std::vector<double>(size, 7.0))) {
    if (y == 0) continue;
    EXPECT_NEAR(y, 10, 1e-12);
    ++kept;
  }
  EXPECT_NEAR(kept / static_cast<double>(size), 0.7, 5 * std::sqrt(0.21 / size));
  Layered test(std::make_shared<Dropout>(DropoutOptions{.ratio = 0.3}), Phase::test, {1, 4});
  expect_near(test.forward({1, 2, 3, 4}), {1, 2, 3, 4});
}

TEST(ReferenceValues, MvnGivesMeanZeroAndDeviationOne) {
  for (bool across : {false, true}) {
    Layered layer(std::make_shared<Mvn>(MvnOptions{.across_channels = across}), Phase::train, {2, 3, 4, 5});
    auto y = layer.forward(varied(120));
    size_t group = across ? 60 : 20;
    for (size_t first = 0; first < y.size(); first += group) {
      double sum = 0, squares = 0;
      for (size_t i = first; i < first + group; ++i) sum += y[i], squares += y[i] * y[i];
      EXPECT_NEAR(sum, 0, 1e-10);
      EXPECT_NEAR(squares / group, 1, 1e-6);
    }
  }
  Layered eps(std::make_shared<Mvn>(MvnOptions{.eps = 1}), Phase::train, {1, 1, 2});
  expect_near(eps.forward({2, 6}), {-2.0 / 3, 2.0 / 3});  // eps is added to the deviation, 2
}

// Caffe's backward pass of `count` elements that share a mean, in its order: the sum of dy * y, times y, plus
// the sum of dy; dy less that over the count; all over sqrt(variance) + eps.
std::vector<double> caffe_mvn_gradient(std::span<const double> x, std::span<const double> dy, double eps) {
  const auto count = static_cast<double>(x.size());
  double mean = 0, variance = 0, product = 0, sum = 0;
  for (double value : x) mean += value / count;
  for (double value : x) variance += (value - mean) * (value - mean) / count;
  std::vector<double> y, dx;
  for (double value : x) y.push_back((value - mean) / (std::sqrt(variance) + eps));
  for (size_t i = 0; i < y.size(); ++i) product += dy[i] * y[i], sum += dy[i];
  for (size_t i = 0; i < y.size(); ++i)
    dx.push_back((dy[i] - (y[i] * product + sum) / count) / (std::sqrt(variance) + eps));
  return dx;
}

TEST(ReferenceValues, MvnHasCaffesGradientForAnyEps) {
  const std::vector<double> x = varied(48), dy = varied(48);
  for (double eps : {1e-9, 0.1, 1.0, 30.0}) {
    for (bool across : {false, true}) {
      Layered mvn(std::make_shared<Mvn>(MvnOptions{.across_channels = across, .eps = eps}), Phase::train,
                  {2, 3, 2, 4});
      std::vector<double> expected, scaled(dy);
      for (size_t i = 0; i < scaled.size(); ++i) scaled[i] *= static_cast<double>(i % 5) - 1;
      const size_t group = across ? 24 : 8;
      for (size_t first = 0; first < 48; first += group)
        for (double dx : caffe_mvn_gradient({&x[first], group}, {&scaled[first], group}, eps))
          expected.push_back(dx);
      mvn.forward(x);
      expect_near(mvn.backward(scaled), expected);
    }
  }
}

TEST(ReferenceValues, NormalizeDividesByTheNormOfSamplesOrPositions) {
  Layered sample(std::make_shared<Normalize>(NormalizeOptions{.eps = 3}), Phase::train, {2, 2, 2});
  sample.memory().parameters[0].set({14});
  // 9 + 16 + 4 + 4 + 3 = 36 and 0 + 0 + 36 + 25 + 3 = 64
  expect_near(sample.forward({3, 4, -2, 2, 0, 0, 6, 5}),
              {3 * 14 / 6.0, 4 * 14 / 6.0, -2 * 14 / 6.0, 2 * 14 / 6.0, 0, 0, 6 * 14 / 8.0, 5 * 14 / 8.0});
  NormalizeOptions options{.across_spatial = false, .channel_shared = false, .eps = 0};
  Layered positions(std::make_shared<Normalize>(options), Phase::train, {1, 2, 2});
  positions.memory().parameters[0].set({10, 100});
  expect_near(positions.forward({3, 5, 4, -12}), {6, 50.0 / 13, 80, -1200.0 / 13});
}

// Level by level what Pooling layers of the windows give, each as channels x windows.
TEST(ReferenceValues, SppIsPoolingOfEveryLevel) {
  const auto x = varied(2 * 3 * 9 * 7);
  for (const bool average : {false, true}) {
    const auto spp_method = average ? SppOptions::Method::average : SppOptions::Method::max;
    const auto method = average ? PoolingOptions::Method::average : PoolingOptions::Method::max;
    Layered spp(std::make_shared<Spp>(SppOptions{3, spp_method}), Phase::train, {2, 3, 9, 7});
    // 9 rows: 9, 2 of 5 (pad 1), 4 of 3 (pad 2); 7 columns: 7, 2 of 4 (pad 1), 4 of 2 (pad 1).
    std::vector<std::vector<double>> levels;
    for (const auto& [kernel, pad] : {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{9, 7}, {0, 0}},
                                      {{5, 4}, {1, 1}},
                                      {{3, 2}, {2, 1}}}) {
      Layered pooling(std::make_shared<Pooling>(
                          PoolingOptions{.method = method, .kernel = kernel, .stride = kernel, .pad = pad}),
                      Phase::train, {2, 3, 9, 7});
      levels.push_back(pooling.forward(x));
    }
    std::vector<double> expected;
    for (size_t n = 0; n < 2; ++n)
      for (const auto& level : levels)
        expected.insert(expected.end(), level.begin() + n * level.size() / 2,
                        level.begin() + (n + 1) * level.size() / 2);
    expect_near(spp.forward(x), expected);
  }
}

TEST(ReferenceValues, ResamplingRepeatsOrInterpolates) {
  Layered nearest(std::make_shared<Resampling>(UpsampleOptions{.scale = 2}), Phase::test, {1, 1, 1, 2});
  expect_near(nearest.forward({3, 5}), {3, 3, 5, 5, 3, 3, 5, 5});
  Layered linear(std::make_shared<Resampling>(UpsampleOptions{2, UpsampleOptions::Mode::linear}), Phase::test,
                 {1, 1, 3});
  expect_near(linear.forward({0, 4, 8}), {0, 1, 3, 5, 7, 8});
  Layered corners(std::make_shared<Resampling>(InterpOptions{.height = 3, .width = 5}), Phase::test,
                  {1, 1, 2, 3});
  expect_near(corners.forward({0, 4, 8, 10, 14, 18}), {0, 2, 4, 6, 8, 5, 7, 9, 11, 13, 10, 12, 14, 16, 18});
  Layered cropped(
      std::make_shared<Resampling>(InterpOptions{.zoom_factor = 2, .pad_begin = -1, .pad_end = -1}),
      Phase::test, {1, 1, 4});
  expect_near(cropped.forward({100, 1, 2, 100}), {1, 1.5, 2});
}

TEST(ReferenceValues, PointwiseFormulas) {
  auto value = [](PointwiseFunction function, double x) {
    return Layered(std::make_shared<Pointwise>(function), Phase::test, {1, 1}).forward({x})[0];
  };
  EXPECT_NEAR(value(ReluOptions{.negative_slope = 0.1}, -2), -0.2, 1e-12);
  EXPECT_EQ(value(Relu6Options{}, -2), 0);
  EXPECT_EQ(value(Relu6Options{}, 2.5), 2.5);
  EXPECT_EQ(value(Relu6Options{}, 6.5), 6);
  EXPECT_NEAR(value(EluOptions{.alpha = 2}, -1), 2 * (std::exp(-1) - 1), 1e-12);
  EXPECT_NEAR(value(SigmoidOptions{}, 0.3), 1 / (1 + std::exp(-0.3)), 1e-12);
  EXPECT_NEAR(value(BnllOptions{}, 0.3), std::log(1 + std::exp(0.3)), 1e-12);
  EXPECT_NEAR(value(BnllOptions{}, 1000), 1000, 1e-12);
  EXPECT_NEAR(value(PowerOptions{.power = 3, .scale = 2, .shift = 1}, 2), 125, 1e-12);
  EXPECT_NEAR(value(ExpOptions{.base = 2, .scale = 3, .shift = 1}, 2), 128, 1e-9);
  EXPECT_NEAR(value(ExpOptions{}, 1), std::exp(1), 1e-12);
  EXPECT_NEAR(value(LogOptions{.base = 2, .scale = 3, .shift = 2}, 10), 5, 1e-12);
  EXPECT_NEAR(value(SwishOptions{}, 1), 0.7310585786300049, 1e-12);
  EXPECT_NEAR(value(SwishOptions{.beta = 2}, -1), -1 / (1 + std::exp(2)), 1e-12);
  EXPECT_EQ(value(ClipOptions{.min = -1, .max = 6}, -3), -1);
  EXPECT_EQ(value(ClipOptions{.min = -1, .max = 6}, 0.25), 0.25);
  EXPECT_EQ(value(ClipOptions{.min = -1, .max = 6}, 6.5), 6);
  EXPECT_EQ(value(ThresholdOptions{.threshold = 0.5}, 0.5), 0);
  EXPECT_EQ(value(ThresholdOptions{.threshold = 0.5}, 0.75), 1);
}

}  // namespace
}  // namespace cortado::check
