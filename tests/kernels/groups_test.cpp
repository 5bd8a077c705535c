// Convolutions of groups against the reference: depthwise ones and those of narrow groups, and the weights'
// gradient that oneDNN's have in place of its own where groups of few channels are merged. Random layers,
// shapes and cuts, in f32 and bf16.
#include <fmt/format.h>

#include "cortado/base/compute_threads.h"
#include "cortado/kernels/native/narrow_groups.h"
#include "cortado/kernels/onednn/engine.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/layers/convolution.h"

#include "tests/kernels/bf16_product.h"
#include "tests/kernels/check.h"
#include "tests/kernels/draw.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

// Some of the samples and rows. (cut_test.cpp cuts the groups, too.)
Task part_of(Draw& draw, const Task& whole) {
  Box box = whole.output_boxes[0];
  for (const int axis : {0, 2}) {
    const int64_t begin = draw(0, box[axis].end - 1);
    box[axis] = {begin, draw(begin + 1, box[axis].end)};
  }
  return cut_task(whole, box);
}

Task random_groups(Draw& draw) {
  const int64_t groups = draw(2, 20), inputs = draw(2, 12);
  const int64_t outputs = draw.chance(60) ? inputs : draw(2, 18);
  Window window{{}, {}, {}, {}};
  Shape shape{draw(1, 4), groups * inputs};
  for (int axis = draw.chance(20) ? 1 : 0; axis < 2; ++axis) {
    window.kernel.push_back(draw(1, 4));
    window.stride.push_back(draw(1, 2));
    window.dilation.push_back(draw.chance(20) ? 2 : 1);
    window.pad.push_back(draw(0, window.kernel.back() - 1));
    shape.append(draw(7, 15));
  }
  const LayerPtr layer =
      std::make_shared<Convolution>(convolution(groups * outputs, window, groups, draw.chance(50)));
  Task task = chain_task(draw.chance(40) ? std::vector{layer, relu()} : std::vector{layer}, shape);
  if (draw.chance(40) && task.layers.size() == 1) task = part_of(draw, task);
  if (draw.chance(15)) task.input_gradients[0] = false;
  task.canonical_parameters = draw.chance(20);
  return task;
}

std::string grouped_text(const Task& task, unsigned number) {
  return fmt::format("case {}: {} to {} in {} groups, box {}", number, task.inputs[0].text(),
                     task.outputs[0].text(), dynamic_cast<const Convolution&>(task.layer()).options().group,
                     task.output_boxes[0].text());
}

// Groups of `width` channels in and out.
Task random_narrow_groups(Draw& draw, int64_t width) {
  const int64_t groups = draw(2, width == 1 ? 50 : 15), channels = groups * width;
  Window window{{}, {}, {}, {}};
  Shape shape{draw(1, 4), channels};
  for (int axis = 0; axis < 2; ++axis) {
    window.kernel.push_back(draw.chance(50) ? 3 : draw(1, 7));
    window.stride.push_back(draw(1, 3));
    window.dilation.push_back(draw.chance(20) ? 2 : 1);
    window.pad.push_back(draw(0, window.kernel.back() + 1));
    shape.append(draw(13, 25));
  }
  const bool bias = draw.chance(50);
  Task task = chain_task({std::make_shared<Convolution>(convolution(channels, window, groups, bias))}, shape);
  if (draw.chance(40)) task = part_of(draw, task);
  if (draw.chance(15)) task.input_gradients[0] = false;
  if (draw.chance(15)) task.parameter_gradients[0] = false;
  if (bias && draw.chance(15)) task.parameter_gradients[1] = false;
  task.canonical_parameters = draw.chance(20);
  return task;
}

void expect_equal(const Task& task, Kernel& kernel, unsigned number) {
  EXPECT_TRUE(matches_reference(task, kernel, 0, DataKind::small_integers)) << grouped_text(task, number);
  EXPECT_TRUE(matches_reference(task, kernel, 1e-5)) << grouped_text(task, number);
}

void expect_equal_in_bf16(const Task& task, Kernel& kernel, unsigned number) {
  EXPECT_TRUE(matches_in_bf16(task, kernel, 0, DataKind::small_integers)) << grouped_text(task, number);
  EXPECT_TRUE(matches_in_bf16(task, kernel, 1e-5)) << grouped_text(task, number);
}

Task with_types(Task task, ElementType input, ElementType output) {
  task.input_types = {input};
  task.output_types = {output};
  return task;
}

bool merges(const Kernel& kernel) { return kernel.name().ends_with("gradient of merged groups"); }

TEST(MergedGroups, EqualReference) {
  int found = 0;
  for (unsigned number = 0; number < 75 && !::testing::Test::HasFailure(); ++number) {
    Draw draw(number);
    const Task task = random_groups(draw);
    const KernelOffer offer = make_onednn_convolution(task);
    ASSERT_TRUE(offer.kernel) << offer.refusal << grouped_text(task, number);
    found += merges(*offer.kernel);
    expect_equal(task, *offer.kernel, number);
  }
  EXPECT_GT(found, 25);
}

// Some of the images are f32.
TEST(MergedGroups, EqualReferenceInBf16) {
  if (!onednn::has_bf16_instructions()) GTEST_SKIP() << "no instructions for bf16 products";
  int found = 0;
  for (unsigned number = 1000; number < 1075 && !::testing::Test::HasFailure(); ++number) {
    Draw draw(number);
    Task task = random_groups(draw);
    task = with_types(task, draw.chance(70) ? ElementType::bf16 : ElementType::f32, ElementType::bf16);
    const KernelOffer offer = make_onednn_convolution(task);
    if (!offer.kernel) continue;  // what oneDNN computes wrongly
    found += merges(*offer.kernel);
    expect_equal_in_bf16(task, *offer.kernel, number);
  }
  EXPECT_GT(found, 25);
}

// ResNeXt's and RegNet's groups; a depthwise layer; inference.
TEST(MergedGroups, AreThoseOfFewChannels) {
  const auto kernel = [](int64_t channels, int64_t groups, Phase phase = Phase::train) {
    const LayerPtr layer = std::make_shared<Convolution>(convolution(channels, {}, groups));
    return make_onednn_convolution(chain_task({layer}, {2, channels, 14, 14}, phase)).kernel;
  };
  EXPECT_TRUE(merges(*kernel(128, 32)));
  EXPECT_EQ(merges(*kernel(256, 32)),
            bool{__builtin_cpu_supports("avx512f") != 0});  // eight fill a vector of AVX2
  EXPECT_FALSE(merges(*kernel(1024, 32)));
  EXPECT_FALSE(merges(*kernel(128, 128)));
  EXPECT_FALSE(merges(*kernel(128, 32, Phase::test)));
}

using Make = KernelOffer (*)(const Task&);

void expect_equal_on_random_layers(Make make, int64_t width, unsigned cases) {
  for (const int threads : {1, 2, 5}) {
    const ComputeThreads several(threads);
    for (unsigned number = 0; number < cases && !::testing::Test::HasFailure(); ++number) {
      Draw draw(number);
      const Task task = random_narrow_groups(draw, width);
      expect_equal(task, *make(task).kernel, number);
      const Task in_bf16 = with_types(task, ElementType::bf16, ElementType::bf16);
      expect_equal_in_bf16(in_bf16, *make(in_bf16).kernel, number);
    }
  }
}

TEST(Depthwise, EqualsReference) { expect_equal_on_random_layers(make_native_depthwise, 1, 60); }
TEST(NarrowGroups, EqualReference) {
  for (const int64_t width : {4, 8}) expect_equal_on_random_layers(make_native_narrow_groups, width, 40);
}

// Written past the caches.
void expect_equal_on_large_tensors(Make make, int64_t groups) {
  const LayerPtr layer = std::make_shared<Convolution>(convolution(64, {}, groups));
  const Task task = chain_task({layer}, {3, 64, 181, 183});
  EXPECT_TRUE(matches_reference(task, *make(task).kernel, 0, DataKind::small_integers));
}
TEST(Depthwise, EqualsReferenceOnLargeTensors) { expect_equal_on_large_tensors(make_native_depthwise, 64); }
TEST(NarrowGroups, EqualReferenceOnLargeTensors) {
  expect_equal_on_large_tensors(make_native_narrow_groups, 16);
}

TEST(Depthwise, Refuses) {
  const auto refusal = [](std::vector<LayerPtr> layers, const Shape& shape) {
    return make_native_depthwise(chain_task(std::move(layers), shape)).refusal;
  };
  const auto of = [](int64_t outputs, int64_t groups) {
    return std::make_shared<Convolution>(convolution(outputs, {}, groups));
  };
  EXPECT_EQ(refusal({of(1, 1)}, {2, 1, 5, 5}), "one group");
  EXPECT_EQ(refusal({of(8, 4)}, {2, 4, 5, 5}), "several channels or filters in a group");
  EXPECT_EQ(refusal({of(8, 4)}, {2, 8, 5, 5}), "several channels or filters in a group");
  EXPECT_EQ(refusal({of(4, 4), relu()}, {2, 4, 5, 5}), "a layer after it does not fuse");
  EXPECT_EQ(refusal({of(4, 4)}, {2, 4, 5}), "not 2-D");
  EXPECT_EQ(refusal({relu()}, {2, 4, 5, 5}), "not a Convolution");
}

TEST(NarrowGroups, Refuse) {
  const auto task = [](int64_t inputs, int64_t outputs, int64_t groups) {
    return chain_task({std::make_shared<Convolution>(convolution(outputs, {}, groups))}, {2, inputs, 5, 5});
  };
  const auto refusal = [](const Task& task) { return make_native_narrow_groups(task).refusal; };
  const char* const other = "not 4 or 8 channels and filters in a group";
  EXPECT_EQ(refusal(task(8, 8, 1)), "one group");
  EXPECT_EQ(refusal(task(8, 8, 8)), other);
  EXPECT_EQ(refusal(task(32, 32, 2)), other);
  EXPECT_EQ(refusal(task(16, 8, 2)), other);
  const Task whole = task(16, 16, 4);
  Box box = whole.output_boxes[0];
  box[1] = {2, 8};
  EXPECT_EQ(refusal(cut_task(whole, box)), "a part of a group");
}

}  // namespace
}  // namespace cortado::check
