// Native pooling against the reference.
#include "cortado/kernels/native/native.h"
#include "cortado/layers/pooling.h"

#include "tests/kernels/check.h"
#include "tests/kernels/largest_allocation.h"
#include "tests/kernels/native_task.h"

namespace cortado::check {
namespace {

PoolingOptions window(std::vector<int64_t> kernel, std::vector<int64_t> stride, std::vector<int64_t> pad) {
  PoolingOptions options;
  options.kernel = std::move(kernel);
  options.stride = std::move(stride);
  options.pad = std::move(pad);
  return options;
}

const std::vector<PoolingOptions> windows = {
    window({2}, {2}, {0}), window({3}, {2}, {0}), window({3}, {2}, {1}), window({3}, {1}, {1}),
    window({1}, {1}, {0}), window({1}, {2}, {0}), window({5}, {3}, {2}), window({4}, {1}, {3})};

void expect_equal(const Task& task, double tolerance, DataKind data) {
  KernelOffer offer = make_native_pooling(task);
  ASSERT_TRUE(offer.kernel) << offer.refusal;
  EXPECT_TRUE(matches_reference(task, *offer.kernel, tolerance, data)) << task.inputs[0].text();
}

void expect_equal_max_and_average(PoolingOptions options, const Shape& shape) {
  for (Rounding rounding : {Rounding::up_inside, Rounding::down}) {
    options.rounding = rounding;
    options.method = PoolingOptions::Method::max;
    Task task = chain_task({std::make_shared<Pooling>(options)}, shape);
    expect_equal(task, 1e-6, DataKind::random);
    expect_equal(task, 0, DataKind::small_integers);  // many equal maxima
    options.method = PoolingOptions::Method::average;
    expect_equal(chain_task({std::make_shared<Pooling>(options)}, shape), 1e-5, DataKind::random);
  }
}

TEST(NativePooling, EqualsReference) {
  for (const PoolingOptions& options : windows) {
    for (const Shape& shape : {Shape{1, 1, 7, 9}, Shape{2, 3, 8, 8}, Shape{2, 17, 9, 6}, Shape{1, 64, 12, 5},
                               Shape{2, 5, 11}, Shape{1, 9, 5, 6, 7}}) {
      expect_equal_max_and_average(options, shape);
    }
  }
}

// Images of one position, channels fewer than a vector and more than a tile, one image and many.
TEST(NativeGlobalPooling, EqualsReference) {
  PoolingOptions global{.method = PoolingOptions::Method::average, .global_pooling = true};
  for (const Shape& shape :
       {Shape{1, 1, 7, 9}, Shape{2, 3, 1, 1}, Shape{1, 1100, 7, 7}, Shape{33, 24, 5, 4}, Shape{1, 20, 90, 80},
        Shape{2, 5, 11}, Shape{1, 9, 5, 6, 7}, Shape{3, 1, 4, 5}}) {
    Task task = chain_task({std::make_shared<Pooling>(global)}, shape);
    KernelOffer offer = make_native_global_pooling(task);
    ASSERT_TRUE(offer.kernel) << offer.refusal;
    EXPECT_TRUE(matches_reference(task, *offer.kernel, 1e-5, DataKind::random)) << shape.text();
  }
}

TEST(NativeGlobalPooling, RefusesOtherWindows) {
  PoolingOptions average = window({5}, {1}, {0});
  EXPECT_EQ(
      make_native_global_pooling(chain_task({std::make_shared<Pooling>(average)}, {1, 3, 5, 5})).refusal,
      "not an average");
  average.method = PoolingOptions::Method::average;
  const auto refusal = [&](const Shape& shape) {
    return make_native_global_pooling(chain_task({std::make_shared<Pooling>(average)}, shape)).refusal;
  };
  EXPECT_EQ(refusal({1, 3, 5, 5}), "");
  EXPECT_EQ(refusal({1, 3, 5, 6}), "windows of parts of the image");
  average.pad = {1};
  average.stride = {3};
  EXPECT_EQ(refusal({1, 3, 5, 5}), "windows of parts of the image");
}

TEST(NativePooling, LeavesWindowsOutsideTheImageToTheReference) {
  Task task = chain_task({std::make_shared<Pooling>(window({1}, {2}, {0}))}, {1, 3, 8, 8});
  EXPECT_EQ(make_native_pooling(task).refusal, "a window outside the image");
}

TEST(NativePooling, EqualsReferenceOnUnequalAxes) {
  expect_equal_max_and_average(window({2, 3}, {1, 2}, {1, 0}), {2, 12, 9, 10});
  expect_equal_max_and_average(window({1, 3, 2}, {1, 2, 3}, {0, 1, 1}), {2, 8, 4, 7, 8});
}

TEST(NativePooling, EqualsReferenceOnWholeImages) {
  PoolingOptions options;
  options.global_pooling = true;
  expect_equal_max_and_average(options, {2, 20, 7, 7});
  expect_equal_max_and_average(options, {1, 8, 17, 19});    // more taps than a byte counts
  expect_equal_max_and_average(options, {2, 11, 90, 110});  // more than a list of positions holds
}

// A list of all positions of the image took four times the image's memory.
TEST(NativePooling, WholeImagesTakeNoMemoryOfTheirSize) {
  PoolingOptions options;
  options.global_pooling = true;
  for (const auto method : {PoolingOptions::Method::max, PoolingOptions::Method::average}) {
    options.method = method;
    const Shape shape{1, 1, 1024, 1024};
    const KernelOffer offer = make_native_pooling(chain_task({std::make_shared<Pooling>(options)}, shape));
    ASSERT_TRUE(offer.kernel) << offer.refusal;
    std::vector<float> input(shape.size(), 0.5F), input_gradient(shape.size());
    std::vector<std::byte> saved(offer.kernel->saved_bytes().count + 1);
    float output = 0, output_gradient = 1;
    largest_allocation = 0;
    Arguments arguments;
    arguments.inputs = {input.data()};
    arguments.outputs = {&output};
    arguments.output_gradients = {&output_gradient};
    arguments.input_gradients = {input_gradient.data()};
    arguments.saved = saved.data();
    offer.kernel->forward(arguments);
    offer.kernel->backward(arguments);
    EXPECT_LT(largest_allocation + offer.kernel->scratch_bytes().count, size_t{1} << 19);
    EXPECT_EQ(output, 0.5F);
  }
}

TEST(NativePooling, EqualsReferenceInTesting) {
  Task task = chain_task({std::make_shared<Pooling>(window({3}, {2}, {0}))}, {2, 19, 9, 9}, Phase::test);
  expect_equal(task, 0, DataKind::random);
  EXPECT_EQ(make_native_pooling(task).kernel->saved_bytes().count, 0);
}

TEST(NativePooling, EqualsReferenceOnParts) {
  for (auto method : {PoolingOptions::Method::max, PoolingOptions::Method::average}) {
    PoolingOptions options = window({3}, {2}, {1});
    options.method = method;
    auto layer = std::make_shared<Pooling>(options);
    Task task = chain_task({layer}, {4, 16, 11, 13});
    task.output_boxes[0][0] = {1, 3};
    task.output_boxes[0][1] = {5, 16};
    task.output_boxes[0][2] = {2, 5};
    task.output_boxes[0][3] = {0, 4};
    task.input_boxes[0] = layer->input_box(task.inputs, 0, 0, task.output_boxes[0]);
    expect_equal(task, 1e-5, DataKind::random);
  }
}

TEST(NativePooling, Refuses) {
  PoolingOptions options = window({2}, {2}, {0});
  options.method = PoolingOptions::Method::stochastic;
  EXPECT_EQ(make_native_pooling(chain_task({std::make_shared<Pooling>(options)}, {1, 2, 4, 4})).refusal,
            "stochastic pooling");
}

}  // namespace
}  // namespace cortado::check
