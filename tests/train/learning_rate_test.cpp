#include "cortado/train/learning_rate.h"

#include <cmath>
#include <gtest/gtest.h>

namespace cortado {
namespace {

using Policy = LearningRateOptions::Policy;

TEST(LearningRate, Fixed) { EXPECT_EQ(learning_rate({.base = 0.3}, 12345), 0.3); }

TEST(LearningRate, StepFallsAtEachMultiple) {
  LearningRateOptions o{.policy = Policy::step, .base = 1, .gamma = 0.5, .stepsize = 10};
  EXPECT_EQ(learning_rate(o, 9), 1);
  EXPECT_EQ(learning_rate(o, 10), 0.5);
  EXPECT_EQ(learning_rate(o, 29), 0.25);
}

TEST(LearningRate, MultistepFallsAtItsValues) {
  LearningRateOptions o{.policy = Policy::multistep, .base = 8, .gamma = 0.5, .stepvalues = {5, 7}};
  EXPECT_EQ(learning_rate(o, 4), 8);
  EXPECT_EQ(learning_rate(o, 5), 4);
  EXPECT_EQ(learning_rate(o, 6), 4);
  EXPECT_EQ(learning_rate(o, 7), 2);
  EXPECT_EQ(learning_rate_step(o, 700), 2);
}

// Caffe passes over at most one value an iteration, in the order of the file.
TEST(LearningRate, MultistepTakesOneStepAnIteration) {
  const LearningRateOptions equal{.policy = Policy::multistep, .stepvalues = {5, 5}};
  EXPECT_EQ(learning_rate_step(equal, 5), 1);
  EXPECT_EQ(learning_rate_step(equal, 6), 2);
  const LearningRateOptions falling{.policy = Policy::multistep, .stepvalues = {8, 3}};
  EXPECT_EQ(learning_rate_step(falling, 7), 0);
  EXPECT_EQ(learning_rate_step(falling, 8), 1);
  EXPECT_EQ(learning_rate_step(falling, 9), 2);
}

TEST(LearningRate, Exp) {
  EXPECT_DOUBLE_EQ(learning_rate({.policy = Policy::exp, .base = 2, .gamma = 0.5}, 3), 0.25);
}

// LeNet's solver in Caffe's examples: 0.01 * (1 + 0.0001 * 10000) ^ -0.75.
TEST(LearningRate, Inv) {
  LearningRateOptions o{.policy = Policy::inv, .base = 0.01, .gamma = 0.0001, .power = 0.75};
  EXPECT_NEAR(learning_rate(o, 10000), 0.01 / std::pow(2, 0.75), 1e-15);
}

TEST(LearningRate, PolyEndsAtZero) {
  LearningRateOptions o{.policy = Policy::poly, .base = 4, .power = 2, .max_iterations = 100};
  EXPECT_DOUBLE_EQ(learning_rate(o, 50), 1);
  EXPECT_EQ(learning_rate(o, 100), 0);
  EXPECT_EQ(learning_rate(o, 130), 0);
}

TEST(LearningRate, SigmoidIsHalfAtStepsize) {
  LearningRateOptions o{.policy = Policy::sigmoid, .base = 1, .gamma = -0.1, .stepsize = 50};
  EXPECT_DOUBLE_EQ(learning_rate(o, 50), 0.5);
  EXPECT_GT(learning_rate(o, 0), 0.99);
}

// 6 + 6 cos(pi t / 300): cos(60 degrees) is 1/2.
TEST(LearningRate, CosineFallsFromItsBaseToZero) {
  LearningRateOptions o{.policy = Policy::cosine, .base = 12, .max_iterations = 300};
  EXPECT_EQ(learning_rate(o, 0), 12);
  EXPECT_NEAR(learning_rate(o, 100), 9, 1e-12);
  EXPECT_NEAR(learning_rate(o, 150), 6, 1e-12);
  EXPECT_NEAR(learning_rate(o, 200), 3, 1e-12);
  EXPECT_NEAR(learning_rate(o, 300), 0, 1e-12);
  EXPECT_NEAR(learning_rate(o, 400), 0, 1e-12);
}

TEST(LearningRate, WarmUpIsLinearAndMeetsThePolicy) {
  LearningRateOptions o{.base = 1, .warmup_iterations = 4, .warmup_start = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(o, 0), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(o, 4), 1);
}

}  // namespace
}  // namespace cortado
