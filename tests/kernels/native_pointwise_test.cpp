// Native pointwise functions and dropout against the reference.
#include "cortado/kernels/native/native.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/check.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/pointwise_functions.h"

namespace cortado::check {
namespace {

const std::vector<Shape> shapes = {{1}, {7}, {3, 5}, {2, 3, 5, 7}, {2, 16, 9}, {1, 9, 3, 4, 5}, {40, 1000}};

void expect_equal(const LayerPtr& layer, const Shape& shape, const Values& values,
                  Phase phase = Phase::train) {
  Task task = chain_task({layer}, shape, phase);
  KernelOffer offer = layer->type() == "Dropout" ? make_native_dropout(task) : make_native_pointwise(task);
  ASSERT_TRUE(offer.kernel) << offer.refusal;
  CheckOptions options;
  options.inputs = {values};
  EXPECT_TRUE(matches_reference(task, *offer.kernel, 1e-5, options)) << layer->type() << ' ' << shape.text();
}

const std::vector<PointwiseFunction> functions_of_all = {ReluOptions{},
                                                         ReluOptions{.negative_slope = 0.1},
                                                         Relu6Options{},
                                                         EluOptions{},
                                                         EluOptions{.alpha = 0.3},
                                                         SigmoidOptions{},
                                                         TanhOptions{},
                                                         AbsOptions{},
                                                         BnllOptions{},
                                                         SwishOptions{},
                                                         SwishOptions{.beta = -0.7},
                                                         ClipOptions{.min = -0.4, .max = 0.9},
                                                         ClipOptions{.min = 0.003, .max = 6},
                                                         ThresholdOptions{},
                                                         ThresholdOptions{.threshold = 0.005}};
const std::vector<PointwiseFunction> functions_of_positive = {
    PowerOptions{.power = 0, .scale = 2, .shift = 1},
    PowerOptions{.power = 1, .scale = 2, .shift = 1},
    PowerOptions{.power = 2, .scale = 2, .shift = 1},
    PowerOptions{.power = -0.7, .scale = 2, .shift = 1},
    ExpOptions{},
    ExpOptions{.base = 2, .scale = 0.5, .shift = 1},
    LogOptions{},
    LogOptions{.base = 10, .scale = 2, .shift = 3}};

TEST(NativePointwise, EqualsReferenceOnAllNumbers) {
  for (const PointwiseFunction& function : functions_of_all) {
    for (const Shape& shape : shapes) {
      for (double range : {0.01, 2.0}) {
        expect_equal(std::make_shared<Pointwise>(function), shape, {.low = -range, .high = range});
      }
      // Forward alone: derivatives computed from saturated outputs are exact only to their rounding.
      expect_equal(std::make_shared<Pointwise>(function), shape, {.low = -80, .high = 80}, Phase::test);
    }
  }
}

TEST(NativePointwise, EqualsReferenceOnPositiveNumbers) {
  for (const PointwiseFunction& function : functions_of_positive) {
    for (const Shape& shape : shapes) {
      expect_equal(std::make_shared<Pointwise>(function), shape, {.low = 0.5, .high = 4});
    }
  }
}

TEST(NativePointwise, EveryFunctionIsTested) {
  std::vector<PointwiseFunction> functions = functions_of_all;
  functions.insert(functions.end(), functions_of_positive.begin(), functions_of_positive.end());
  EXPECT_TRUE(has_every_function(functions));
}

TEST(NativePointwise, RefusesWhatHidesTheSign) {
  auto layer = std::make_shared<Pointwise>(ReluOptions{.negative_slope = -1});
  EXPECT_EQ(make_native_pointwise(chain_task({layer}, {2, 3})).refusal, "a negative slope or alpha");
}

TEST(NativeDropout, DropsWhatTheReferenceDrops) {
  for (double ratio : {0.0, 0.25, 0.5, 0.9}) {
    auto layer = std::make_shared<Dropout>(DropoutOptions{.ratio = ratio});
    for (const Shape& shape : shapes) {
      expect_equal(layer, shape, {});
      expect_equal(layer, shape, {}, Phase::test);
    }
  }
}

TEST(NativeDropout, DropsTheSameElementsOfParts) {
  Task task = chain_task({std::make_shared<Dropout>(DropoutOptions{})}, {4, 24, 6, 7});
  task.output_boxes[0][0] = {1, 3};
  task.output_boxes[0][1] = {3, 20};
  task.output_boxes[0][2] = {2, 6};
  task.output_boxes[0][3] = {1, 5};
  task.input_boxes = task.output_boxes;
  EXPECT_TRUE(matches_reference(task, *make_native_dropout(task).kernel, 1e-5));
}

}  // namespace
}  // namespace cortado::check
