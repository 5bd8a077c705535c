// The cost model of the lowerings against the paper's formulas and against what the kernels' own matrices are
// counted to hold.
#include <gtest/gtest.h>
#include <numeric>

#include "cortado/kernels/lowering/cost.h"
#include "cortado/kernels/lowering/lowering.h"

#include "tests/kernels/draw.h"

namespace cortado::lowering {
namespace {

using ::cortado::check::Draw;

constexpr LoweringType types[] = {LoweringType::one, LoweringType::two, LoweringType::three};

// The windows of an axis as Caffe counts them.
ConvolutionAxis axis_of(int64_t image, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t windows = (image + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  return {image, windows, kernel, stride, dilation, pad};
}

// Caffe con Troll, Figure 6: an n x n image of d channels, k x k x d kernels, o of them.
TEST(LoweringCost, IsThatOfThePaper) {
  const int64_t n = 27, k = 5, d = 96, o = 256, m = n - k + 1;
  ConvolutionProblem problem;
  problem.image_channels = d;
  problem.window_channels = o;
  problem.axis[1] = problem.axis[2] = axis_of(n, k, 1, 0, 1);
  const LoweringCost one = lowering_cost(problem, LoweringType::one);
  const LoweringCost two = lowering_cost(problem, LoweringType::two);
  const LoweringCost three = lowering_cost(problem, LoweringType::three);
  EXPECT_EQ(one.lowered_data, k * k * d * m * m);
  EXPECT_EQ(two.lowered_data, k * d * m * n);
  EXPECT_EQ(three.lowered_data, d * n * n);
  EXPECT_EQ(one.product, o * m * m);
  EXPECT_EQ(two.product, o * k * m * n);
  EXPECT_EQ(three.product, o * k * k * n * n);
  EXPECT_EQ(one.multiply.count, 2.0 * o * k * k * d * m * m);
  EXPECT_EQ(two.multiply.count, 2.0 * o * k * k * d * m * n);
  EXPECT_EQ(three.multiply.count, 2.0 * o * k * k * d * n * n);
  EXPECT_EQ(one.lift.count, 0);
  EXPECT_EQ(two.lift.count, 1.0 * m * m * k * o);
  EXPECT_EQ(three.lift.count, 1.0 * m * m * k * k * o);
  for (const LoweringCost& cost : {one, two, three}) {
    EXPECT_EQ(cost.lowered_kernel, o * k * k * d);
    EXPECT_EQ(cost.lift_reads, cost.product);
  }
  EXPECT_EQ(one.copied_product + three.copied_data, 0) << "that of type 1 is y, those of type 3 are x";
}

ConvolutionProblem random_problem(Draw& draw) {
  ConvolutionProblem problem;
  problem.batch = draw(1, 3);
  problem.groups = draw.chance(30) ? 2 : 1;
  problem.image_channels = draw(1, 4);
  problem.window_channels = draw(1, 4);
  for (int i = draw.chance(30) ? 0 : 1; i < 3; ++i) {
    const int64_t kernel = draw(1, 4), dilation = draw(1, 2);
    problem.axis[static_cast<size_t>(i)] =
        axis_of(draw(dilation * (kernel - 1) + 1, 11), kernel, draw(1, 4), draw(0, 2), dilation);
  }
  return problem;
}

double sum_of(const std::vector<float>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// On ones, what is gathered and scattered counts itself.
TEST(LoweringCost, IsWhatTheMatricesHold) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    const ConvolutionProblem problem = random_problem(draw);
    for (const LoweringType type : types) {
      SCOPED_TRACE(::testing::Message() << "case " << seed << ", type " << static_cast<int>(type));
      const Lowering lowering(problem, type);
      const LoweringCost cost = lowering_cost(problem, type);
      int64_t data = 0, product = 0, kernel = 0;
      double multiply = 0, added = 0;
      std::vector<float> windows(static_cast<size_t>(problem.batch * lowering.windows_sample()));
      for (const LoweringClass& each : lowering.classes()) {
        const int64_t rows = problem.batch * each.data.rows();
        data += problem.groups * rows * each.data.columns();
        product += problem.groups * rows * each.product.columns();
        kernel += problem.groups * each.data.columns() * each.product.columns();
        multiply += 2.0 * static_cast<double>(problem.groups * rows * each.data.columns()) *
                    static_cast<double>(each.product.columns());
        const std::vector<float> ones(static_cast<size_t>(rows * each.product.columns()), 1.0f);
        for (int64_t group = 0; group < problem.groups && !windows.empty(); ++group)
          each.product.scatter(ones.data(), problem.batch, windows.data() + group * problem.window_channels,
                               true, {});
      }
      added = sum_of(windows);
      EXPECT_EQ(cost.lowered_data, data);
      EXPECT_EQ(cost.product, product);
      EXPECT_EQ(cost.lowered_kernel, kernel);
      EXPECT_EQ(cost.multiply.count, multiply);
      EXPECT_EQ(cost.lift.count, type == LoweringType::one ? 0 : added);
      EXPECT_EQ(cost.image, problem.batch * lowering.image_sample());
      EXPECT_EQ(cost.windows, problem.batch * lowering.windows_sample());
    }
  }
}

// Many image channels and few output channels are for type 3, the reverse for type 1 (Figure 8).
TEST(LoweringCost, RanksByTheRatioOfChannels) {
  const FlopRate peak{1e11};
  const Bandwidth memory{1e10};
  auto time = [&](int64_t d, int64_t o, LoweringType type) {
    ConvolutionProblem problem;
    problem.image_channels = d;
    problem.window_channels = o;
    problem.axis[1] = problem.axis[2] = axis_of(13, 3, 1, 1, 1);
    return predicted_time(lowering_cost(problem, type), peak, memory);
  };
  EXPECT_LT(time(384, 16, LoweringType::three), time(384, 16, LoweringType::one));
  EXPECT_LT(time(16, 384, LoweringType::one), time(16, 384, LoweringType::three));
  // Without windows wider than a position all types are one.
  ConvolutionProblem point;
  point.axis[1] = point.axis[2] = axis_of(13, 1, 1, 0, 1);
  for (const LoweringType type : types)
    EXPECT_EQ(predicted_time(lowering_cost(point, type), peak, memory),
              predicted_direct_time(point, peak, memory));
}

}  // namespace
}  // namespace cortado::lowering
