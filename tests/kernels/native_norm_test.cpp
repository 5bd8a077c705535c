// Native BatchNorm, Scale, Bias, PReLU and LRN against the reference.
#include "cortado/base/compute_threads.h"
#include "cortado/kernels/native/native.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/scale.h"

#include "tests/kernels/check.h"
#include "tests/kernels/make_layer.h"
#include "tests/kernels/native_task.h"

namespace cortado::check {
namespace {

// Odd channel counts, one image, more rows than a block of a sum, matrices, 1-D and 3-D.
const std::vector<Shape> norm_shapes = {{4, 3},        {1, 1, 1, 5}, {1, 5, 7, 3},    {2, 17, 9, 11},
                                        {3, 64, 6, 7}, {2, 8, 150},  {2, 6, 3, 4, 5}, {70, 16}};

LayerPtr batch_norm(BatchNormOptions options = {}) { return std::make_shared<BatchNorm>(options); }
LayerPtr scale(bool bias) {
  ScaleOptions options;
  options.bias_term = bias;
  return std::make_shared<Scale>(options);
}

void expect_equal(const Task& task, KernelOffer (*make)(const Task&), const CheckOptions& options = {}) {
  KernelOffer offer = make(task);
  ASSERT_TRUE(offer.kernel) << offer.refusal;
  EXPECT_TRUE(matches_reference(task, *offer.kernel, 1e-5, options)) << task.inputs[0].text();
}

TEST(NativeBatchNorm, Trains) {
  for (const Shape& shape : norm_shapes) {
    expect_equal(chain_task({batch_norm()}, shape), make_native_batch_norm);
    expect_equal(chain_task({batch_norm({.eps = 0.1})}, shape), make_native_batch_norm);
  }
}

std::vector<LayerPtr> activations() {
  const PointwiseFunction functions[] = {ReluOptions{},
                                         ReluOptions{.negative_slope = 0.2},
                                         Relu6Options{},
                                         SwishOptions{},
                                         SwishOptions{.beta = 2.5},
                                         ClipOptions{.min = 0, .max = 6},
                                         ClipOptions{.min = -0.4, .max = 0.3}};
  std::vector<LayerPtr> layers;
  for (const PointwiseFunction& function : functions) layers.push_back(layer<Pointwise>(function));
  return layers;
}

TEST(NativeBatchNorm, FusesScaleAndActivation) {
  for (const Shape& shape : norm_shapes) {
    for (bool bias : {false, true})
      expect_equal(chain_task({batch_norm({.eps = 0.1}), scale(bias)}, shape), make_native_batch_norm);
    for (const LayerPtr& activation : activations()) {
      for (bool bias : {false, true})
        expect_equal(chain_task({batch_norm({.eps = 0.1}), scale(bias), activation}, shape),
                     make_native_batch_norm);
      expect_equal(chain_task({batch_norm({.eps = 0.1}), activation}, shape), make_native_batch_norm);
    }
  }
}

// An activation with a finite value at infinity does not hide one.
TEST(NativeBatchNorm, CarriesInfinityThroughItsActivation) {
  for (const LayerPtr& activation : activations()) {
    const Task task = chain_task({batch_norm(), activation}, {1, 1, 1, 1}, Phase::test);
    const auto kernel = make_native_batch_norm(task).kernel;
    for (const float infinity : {INFINITY, -INFINITY}) {
      float y = 0, mean = 0, variance = 1, factor = 1;
      std::vector<std::byte> scratch(kernel->scratch_bytes().count);
      kernel->forward({.inputs = {&infinity},
                       .outputs = {&y},
                       .parameters = {&mean, &variance, &factor},
                       .scratch = scratch.data()});
      EXPECT_FALSE(std::isfinite(y)) << activation->type();
    }
  }
}

TEST(NativeBatchNorm, UsesGlobalStatistics) {
  for (const Shape& shape : norm_shapes) {
    expect_equal(chain_task({batch_norm(), scale(true), relu()}, shape, Phase::test), make_native_batch_norm);
    expect_equal(chain_task({batch_norm({.use_global_stats = true}), scale(true), relu()}, shape),
                 make_native_batch_norm);
    expect_equal(chain_task({batch_norm({.use_global_stats = true})}, shape), make_native_batch_norm);
  }
}

TEST(NativeBatchNorm, KeepsPrecisionFarFromZero) {
  CheckOptions far;
  far.inputs = {{.low = 999, .high = 1001}};
  for (const Shape& shape : {Shape{16, 5, 20, 20}, Shape{3, 16, 9, 9}}) {
    Task task = chain_task({batch_norm()}, shape);
    KernelOffer offer = make_native_batch_norm(task);
    EXPECT_TRUE(matches_reference(task, *offer.kernel, 2e-4, far)) << "one float of 1000 is 6e-5 apart";
  }
}

TEST(NativeBatchNorm, Refuses) {
  EXPECT_EQ(make_native_batch_norm(chain_task({relu()}, {2, 3})).refusal, "not a BatchNorm");
  EXPECT_EQ(make_native_batch_norm(chain_task({batch_norm(), relu(), relu()}, {2, 3})).refusal,
            "a layer after BatchNorm does not fuse");
  const auto negative = layer<Pointwise>(ReluOptions{.negative_slope = -1});
  EXPECT_EQ(make_native_batch_norm(chain_task({batch_norm(), negative}, {2, 3})).refusal,
            "a layer after BatchNorm does not fuse");
}

TEST(NativeScale, EqualsReference) {
  for (const Shape& shape : norm_shapes) {
    for (bool bias : {false, true}) {
      Task task = chain_task({scale(bias)}, shape);
      expect_equal(task, make_native_scale);
      task.parameter_gradients[0] = false;
      expect_equal(task, make_native_scale);
    }
    expect_equal(chain_task({std::make_shared<Bias>(BiasOptions{})}, shape), make_native_scale);
  }
}

// Operands of all axes that a tensor has, as a parameter and as the second input, on one to three threads.
void expect_equal_broadcasts(const Shape& shape, DataKind data, double tolerance) {
  const auto expect = [&](const LayerPtr& layer, const std::vector<Shape>& inputs) {
    Task task = whole_task(layer, Phase::train, inputs, 1);
    for (int wanted = 0; wanted < 3; ++wanted) {
      if (wanted == 1) task.input_gradients[0] = false;
      if (wanted == 2) task.input_gradients.assign(inputs.size(), true), task.input_gradients.back() = false;
      KernelOffer offer = make_native_scale(task);
      ASSERT_TRUE(offer.kernel) << offer.refusal;
      EXPECT_TRUE(matches_reference(task, *offer.kernel, tolerance, data))
          << layer->type() << ' ' << shape.text() << ' ' << layer->options_text(Words::all);
    }
  };
  for (int axis = 0; axis < shape.rank(); ++axis) {
    for (int axes = 0; axis + axes <= shape.rank(); ++axes) {
      const Broadcast broadcast{.axis = axis, .num_axes = axes};
      const std::vector<Shape> one{shape}, two{shape, Shape(shape.extents().subspan(axis, axes))};
      for (const auto& inputs : {one, two}) {
        for (bool bias : {false, true})
          expect(layer<Scale>(ScaleOptions{.broadcast = broadcast, .bias_term = bias}), inputs);
        expect(layer<Bias>(BiasOptions{.broadcast = broadcast}), inputs);
      }
    }
  }
}

TEST(NativeScale, EqualsReferenceForEveryBroadcast) {
  const int threads = compute_threads();
  for (int count : {1, 2, 3}) {
    set_compute_threads(count);
    for (const Shape& shape : {Shape{5}, Shape{3, 7}, Shape{1, 1, 4, 1}, Shape{2, 17, 9, 3}, Shape{3, 4, 9},
                               Shape{2, 3, 4, 5, 6}}) {
      expect_equal_broadcasts(shape, DataKind::random, 1e-5);
      expect_equal_broadcasts(shape, DataKind::small_integers, 0);
    }
  }
  set_compute_threads(threads);
}

// More channels than a tile has, more tiles than threads share, more repeats than a sum in float has. Sums of
// tens of thousands may cancel to little, so their rounding is compared loosely; integers are exact.
TEST(NativeScale, EqualsReferenceOnLargerTensors) {
  for (const Shape& shape : {Shape{2, 1100, 5, 3}, Shape{70, 24, 3, 3}, Shape{1, 3, 80, 90}}) {
    for (const Shape& operand :
         {Shape{}, Shape{shape[0]}, Shape{shape[0], shape[1]}, Shape{shape[0], shape[1], shape[2]}, shape}) {
      const ScaleOptions options{.broadcast = {.axis = 0}, .bias_term = true};
      const std::vector<Shape> inputs{shape, operand};
      const Task task = whole_task(layer<Scale>(options), Phase::train, inputs, 1);
      const auto kernel = make_native_scale(task).kernel;
      EXPECT_TRUE(matches_reference(task, *kernel, 1e-4));
      EXPECT_TRUE(matches_reference(task, *kernel, 0, DataKind::small_integers));
    }
    expect_equal(chain_task({scale(true)}, shape), make_native_scale);
  }
}

TEST(NativeScale, EqualsReferenceOnParts) {
  const Shape inputs[] = {{4, 24, 6, 7}, {4, 24}};
  Task whole = whole_task(layer<Scale>(ScaleOptions{.broadcast = {.axis = 0}}), Phase::train, inputs, 1);
  Box box = whole.domain_box;
  box[0] = {1, 3};
  box[2] = {2, 6};
  const Task part = cut_task(whole, box);
  expect_equal(part, make_native_scale);
}

TEST(NativeScale, RefusesChains) {
  EXPECT_EQ(make_native_scale(chain_task({scale(false), relu()}, {2, 3})).refusal,
            "a layer after Scale or Bias does not fuse");
}

TEST(NativePRelu, EqualsReference) {
  for (const Shape& shape : norm_shapes) {
    for (bool shared : {false, true}) {
      PReluOptions options;
      options.channel_shared = shared;
      Task task = chain_task({std::make_shared<PRelu>(options)}, shape);
      expect_equal(task, make_native_prelu);
      EXPECT_TRUE(matches_reference(task, *make_native_prelu(task).kernel, 0, DataKind::small_integers));
      task.input_gradients[0] = false;
      expect_equal(task, make_native_prelu);
      task.input_gradients[0] = true;
      task.parameter_gradients[0] = false;
      expect_equal(task, make_native_prelu);
    }
  }
}

TEST(NativeLrn, EqualsReference) {
  for (const Shape& shape : {Shape{1, 1, 2, 2}, Shape{2, 3, 4, 5}, Shape{2, 17, 3, 3}, Shape{1, 96, 5, 5}}) {
    for (int64_t size : {1, 3, 5, 9}) {
      for (double beta : {0.75, 0.5, 1.3}) {
        LrnOptions options{.local_size = size, .alpha = 2, .beta = beta, .k = 1.5};
        expect_equal(chain_task({std::make_shared<Lrn>(options)}, shape), make_native_lrn);
      }
    }
  }
}

TEST(NativeLrn, EqualsReferenceWithinChannels) {
  for (const Shape& shape : {Shape{1, 1, 2, 2}, Shape{2, 3, 4, 5}, Shape{2, 17, 1, 6}, Shape{3, 32, 9, 7}}) {
    for (int64_t size : {1, 3, 5, 9}) {
      for (double beta : {0.75, 0.5, 1.3}) {
        const LrnOptions options{
            .local_size = size, .alpha = 2, .beta = beta, .region = LrnOptions::Region::within_channel};
        expect_equal(chain_task({std::make_shared<Lrn>(options)}, shape), make_native_lrn);
      }
    }
  }
}

TEST(NativeLrn, EqualsReferenceOnLargeInputs) {
  CheckOptions large;
  large.inputs = {{.low = -1e4, .high = 1e4}};
  expect_equal(chain_task({std::make_shared<Lrn>(LrnOptions{})}, {2, 24, 5, 5}), make_native_lrn, large);
}

}  // namespace
}  // namespace cortado::check
