// The fast kernels of losses and of layers that move elements, compared with the references.
#include "cortado/base/compute_threads.h"
#include "cortado/kernels/native/native.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/axpy.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/flatten.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/reshape.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/layers/split.h"

#include "tests/kernels/check.h"

namespace cortado {
namespace {

using check::CheckOptions;
using check::matches_reference;
using Make = KernelOffer (*)(const Task&);

// The kernel's results equal the reference's with one thread and with three.
testing::AssertionResult agrees(Make make, const Task& task, double tolerance,
                                const CheckOptions& options = {}) {
  testing::AssertionResult result = testing::AssertionSuccess();
  const int threads = compute_threads();
  for (int count : {1, 3}) {
    set_compute_threads(count);
    KernelOffer offer = make(task);
    if (!offer.kernel) {
      result = testing::AssertionFailure() << "refused: " << offer.refusal;
    } else {
      result = matches_reference(task, *offer.kernel, tolerance, options);
    }
    if (!result) break;
  }
  set_compute_threads(threads);
  return result;
}

template <typename L, typename Options>
Task task_of(Options options, std::vector<Shape> inputs, int outputs = 1, Phase phase = Phase::train) {
  return whole_task(std::make_shared<L>(options), phase, inputs, outputs);
}

TEST(NativeAxpy, EqualsTheReference) {
  for (const Shape& x :
       {Shape{5, 10}, Shape{2, 21, 3, 5}, Shape{3, 1, 40}, Shape{1, 67, 9, 9}, Shape{2, 8, 3, 4, 5}}) {
    Shape factor{x[0], x[1]};
    if (x.rank() > 3) factor.append(1);
    Task task = whole_task(std::make_shared<Axpy>(), Phase::train, std::vector<Shape>{factor, x, x}, 1);
    for (int unwanted = -1; unwanted < 3; ++unwanted) {
      task.input_gradients = {unwanted != 0, unwanted != 1, unwanted != 2};
      EXPECT_TRUE(agrees(make_native_axpy, task, 1e-5)) << x.text() << " without " << unwanted;
    }
  }
}

TEST(NativeResampling, EqualsTheReference) {
  using Mode = UpsampleOptions::Mode;
  for (const Shape& x : {Shape{2, 3, 7, 5}, Shape{1, 70, 4, 6}, Shape{2, 16, 9}, Shape{1, 9, 3, 4, 2}}) {
    for (const Mode mode : {Mode::nearest, Mode::linear})
      EXPECT_TRUE(agrees(make_native_resampling, task_of<Resampling>(UpsampleOptions{3, mode}, {x}), 1e-5));
    const InterpOptions zoom{.zoom_factor = 4, .pad_begin = -1}, shrink{.shrink_factor = 3};
    EXPECT_TRUE(agrees(make_native_resampling, task_of<Resampling>(zoom, {x}), 1e-5)) << x.text();
    EXPECT_TRUE(agrees(make_native_resampling, task_of<Resampling>(shrink, {x}), 1e-5)) << x.text();
  }
}

TEST(NativeSoftmax, EqualsTheReference) {
  CheckOptions wide{.inputs = {{.low = -30, .high = 30}}};
  EXPECT_TRUE(agrees(make_native_softmax, task_of<Softmax>(SoftmaxOptions{}, {{5, 10}}), 1e-5));
  EXPECT_TRUE(agrees(make_native_softmax, task_of<Softmax>(SoftmaxOptions{}, {{2, 21, 3, 5}}), 1e-5, wide));
  EXPECT_TRUE(
      agrees(make_native_softmax, task_of<Softmax>(SoftmaxOptions{.axis = -1}, {{3, 1000}}), 1e-5, wide));
  EXPECT_EQ(make_native_softmax(task_of<Softmax>(SoftmaxOptions{.axis = 2}, {{2, 3, 4}})).refusal,
            "the softmax axis is not contiguous in memory");
}

TEST(NativeSoftmaxLoss, EqualsTheReference) {
  for (auto normalization :
       {Normalization::full, Normalization::valid, Normalization::batch_size, Normalization::none}) {
    SoftmaxLossOptions options{.ignore_label = 3, .normalization = normalization};
    CheckOptions values{.inputs = {{.low = -20, .high = 20}, {.low = 0, .high = 10, .integers = true}}};
    EXPECT_TRUE(agrees(make_native_softmax_loss, task_of<SoftmaxLoss>(options, {{2, 10, 3, 4}, {2, 3, 4}}, 2),
                       1e-5, values));
    EXPECT_TRUE(
        agrees(make_native_softmax_loss, task_of<SoftmaxLoss>(options, {{17, 10}, {17}}), 1e-5, values));
  }
  CheckOptions many{.inputs = {{.low = -5, .high = 5}, {.low = 0, .high = 1000, .integers = true}}};
  EXPECT_TRUE(agrees(make_native_softmax_loss,
                     task_of<SoftmaxLoss>(SoftmaxLossOptions{}, {{8, 1000}, {8, 1}}), 1e-5, many));
  for (const double smoothing : {0.1, 0.9})
    EXPECT_TRUE(
        agrees(make_native_softmax_loss,
               task_of<SoftmaxLoss>(SoftmaxLossOptions{.label_smoothing = smoothing}, {{8, 1000}, {8, 1}}),
               1e-5, many));
  Task test = task_of<SoftmaxLoss>(SoftmaxLossOptions{}, {{8, 1000}, {8}}, 1, Phase::test);
  EXPECT_TRUE(agrees(make_native_softmax_loss, test, 1e-5, many));
}

TEST(NativeAccuracy, EqualsTheReference) {
  CheckOptions ties{
      .inputs = {{.low = 0, .high = 4, .integers = true}, {.low = 0, .high = 5, .integers = true}}};
  for (int top_k : {1, 2, 5}) {
    AccuracyOptions options{.top_k = top_k, .ignore_label = 2};
    EXPECT_TRUE(agrees(make_native_accuracy, task_of<Accuracy>(options, {{50, 5}, {50}}, 2, Phase::test),
                       1e-6, ties));
    EXPECT_TRUE(
        agrees(make_native_accuracy, task_of<Accuracy>(options, {{4, 5, 3, 4}, {4, 3, 4}}, 1), 1e-6, ties));
  }
}

TEST(NativeConcatAndSlice, EqualTheReference) {
  for (int axis = 0; axis < 4; ++axis) {
    std::vector<Shape> parts(3, Shape{2, 16, 3, 4});
    for (int i = 0; i < 3; ++i) parts[i].set(axis, 3 * i + 1);
    EXPECT_TRUE(agrees(make_native_concat, task_of<Concat>(ConcatOptions{axis}, parts), 0));
    SliceOptions slice{.axis = axis, .slice_points = {1, 3}};
    EXPECT_TRUE(agrees(make_native_slice, task_of<Slice>(slice, {{4, 5, 6, 7}}, 3), 0));
  }
  EXPECT_TRUE(agrees(make_native_concat, task_of<Concat>(ConcatOptions{.axis = 1}, {{3, 4}, {3, 2}}), 0));
  EXPECT_TRUE(
      agrees(make_native_concat, task_of<Concat>(ConcatOptions{.axis = 2}, {{3, 4, 2}, {3, 4, 5}}), 0));
}

// Tensors above the size from which stores go past the caches.
TEST(NativeConcatAndSlice, EqualTheReferenceOnLargeTensors) {
  std::vector<Shape> parts{{1, 16, 512, 512}, {1, 8, 512, 512}};
  EXPECT_TRUE(agrees(make_native_concat, task_of<Concat>(ConcatOptions{}, parts), 0));
  parts[1].set(1, 9);
  EXPECT_TRUE(agrees(make_native_concat, task_of<Concat>(ConcatOptions{}, parts), 0));
  EXPECT_TRUE(agrees(make_native_slice, task_of<Slice>(SliceOptions{.axis = 0}, {{2, 24, 512, 512}}, 2), 0));
}

TEST(NativeEltwise, EqualsTheReference) {
  using Operation = EltwiseOptions::Operation;
  CheckOptions integers{.data = check::DataKind::small_integers};
  for (int inputs : {2, 3}) {
    std::vector<Shape> shapes(inputs, Shape{3, 7, 5, 3});
    std::vector<double> factors(inputs, 1.0);
    for (EltwiseOptions options :
         {EltwiseOptions{}, EltwiseOptions{.coeff = factors}, EltwiseOptions{.operation = Operation::prod},
          EltwiseOptions{.operation = Operation::max}}) {
      EXPECT_TRUE(agrees(make_native_eltwise, task_of<Eltwise>(options, shapes), 0, integers));
    }
    factors.back() = -0.3;
    EXPECT_TRUE(
        agrees(make_native_eltwise, task_of<Eltwise>(EltwiseOptions{.coeff = factors}, shapes), 1e-6));
    EltwiseOptions unstable{.operation = Operation::prod, .stable_prod_grad = false};
    EXPECT_TRUE(agrees(make_native_eltwise, task_of<Eltwise>(unstable, shapes), 1e-5));
  }
}

TEST(NativeEltwise, FusesASumWithItsReLU) {
  for (const std::vector<double>& coeff : {std::vector<double>{}, std::vector<double>{0.5, -2}}) {
    Task task = task_of<Eltwise>(EltwiseOptions{.coeff = coeff}, {{2, 9, 5, 3}, {2, 9, 5, 3}});
    task.layers.push_back(std::make_shared<Pointwise>(ReluOptions{}));
    EXPECT_TRUE(agrees(make_native_eltwise, task, 1e-6));
  }
  Task leaky = task_of<Eltwise>(EltwiseOptions{}, {{2, 3}, {2, 3}});
  leaky.layers.push_back(std::make_shared<Pointwise>(ReluOptions{.negative_slope = 0.1}));
  EXPECT_EQ(make_native_eltwise(leaky).refusal, "a ReLU after it does not fuse");
}

TEST(NativeReshape, EqualsTheReference) {
  EXPECT_TRUE(agrees(make_native_reshape, task_of<Flatten>(FlattenOptions{}, {{3, 70, 7, 9}}), 0));
  EXPECT_TRUE(agrees(make_native_reshape, task_of<Flatten>(FlattenOptions{}, {{3, 5, 2, 7, 9}}), 0));
  EXPECT_TRUE(agrees(make_native_reshape, task_of<Flatten>(FlattenOptions{}, {{3, 70, 1, 1}}), 0));
  EXPECT_TRUE(agrees(make_native_reshape, task_of<Flatten>(FlattenOptions{.axis = 2}, {{3, 5, 7, 9}}), 0));
  EXPECT_TRUE(agrees(make_native_reshape, task_of<Flatten>(FlattenOptions{.axis = 0}, {{3, 5, 7}}), 0));
  EXPECT_TRUE(
      agrees(make_native_reshape, task_of<Reshape>(ReshapeOptions{.shape = {0, 5, 7, -1}}, {{3, 315}}), 0));
  EXPECT_EQ(make_native_reshape(task_of<Reshape>(ReshapeOptions{.shape = {0, 10, 7}}, {{3, 5, 14}})).refusal,
            "channels and positions are regrouped on both sides");
}

TEST(NativeCrop, EqualsTheReference) {
  EXPECT_TRUE(agrees(make_native_crop,
                     task_of<Crop>(CropOptions{.offset = {1, 2}}, {{2, 5, 6, 7}, {2, 5, 4, 3}}), 0));
  EXPECT_TRUE(
      agrees(make_native_crop,
             task_of<Crop>(CropOptions{.axis = 0, .offset = {1, 0, 2, 0}}, {{3, 5, 6, 7}, {2, 4, 4, 7}}), 0));
  EXPECT_TRUE(
      agrees(make_native_crop, task_of<Crop>(CropOptions{.axis = 1, .offset = {2}}, {{3, 5}, {3, 2}}), 0));
  EXPECT_TRUE(agrees(make_native_crop, task_of<Crop>(CropOptions{}, {{3, 5, 4}, {3, 5, 4}}), 0));
}

TEST(NativeShuffleChannel, EqualsTheReference) {
  for (const int group : {1, 2, 3, 4, 12}) {
    for (const Shape& shape : {Shape{3, 12}, Shape{2, 24, 5}, Shape{3, 36, 7, 5}, Shape{1, 12, 2, 3, 4}})
      EXPECT_TRUE(agrees(make_native_shuffle_channel,
                         task_of<ShuffleChannel>(ShuffleChannelOptions{.group = group}, {shape}), 0));
  }
}

TEST(NativeSplit, EqualsTheReference) {
  for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{2, 17, 9, 11}, Shape{5, 2, 1000}}) {
    for (int outputs : {1, 2, 5}) {
      const Task task = whole_task(std::make_shared<Split>(), Phase::train, {&shape, 1}, outputs);
      EXPECT_TRUE(agrees(make_native_split, task, 1e-6));
      EXPECT_TRUE(agrees(make_native_split, task, 0, {.data = check::DataKind::small_integers}));
    }
  }
}

}  // namespace
}  // namespace cortado
