// The weights' gradients that oneDNN's convolutions of groups have in place of its own: of merged groups of
// few channels, and of wide depthwise windows. Against the reference: random layers, shapes and cuts, in f32
// and bf16.
#include <fmt/format.h>

#include "cortado/kernels/bf16_products.h"
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

Task random_depthwise(Draw& draw) {
  const int64_t channels = draw(2, 50);
  const Window window{{draw(1, 7), draw.chance(70) ? 5 : 7}, {draw(1, 3), draw(1, 3)}, {0, draw(0, 4)}, {1}};
  Task task = chain_task({std::make_shared<Convolution>(convolution(channels, window, channels, false))},
                         {draw(1, 4), channels, draw(7, 15), draw(7, 15)});
  if (draw.chance(40)) task = part_of(draw, task);
  if (draw.chance(15)) task.input_gradients[0] = false;
  task.canonical_parameters = draw.chance(20);
  return task;
}

// Random tasks in f32 against the reference, at least `least` of them by a kernel of that name.
void expect_equal(Task (*random)(Draw&), const std::string& gradient, int least) {
  int found = 0;
  for (unsigned number = 0; number < 75 && !::testing::Test::HasFailure(); ++number) {
    Draw draw(number);
    const Task task = random(draw);
    const KernelOffer offer = make_onednn_convolution(task);
    ASSERT_TRUE(offer.kernel) << offer.refusal << grouped_text(task, number);
    found += offer.kernel->name().ends_with(gradient);
    EXPECT_TRUE(matches_reference(task, *offer.kernel, 0, DataKind::small_integers))
        << grouped_text(task, number);
    EXPECT_TRUE(matches_reference(task, *offer.kernel, 1e-5)) << grouped_text(task, number);
  }
  EXPECT_GT(found, least);
}

// The same of images in bf16, some of f32.
void expect_equal_in_bf16(Task (*random)(Draw&), const std::string& gradient, int least) {
  if (!has_bf16_products()) GTEST_SKIP() << "no instructions for bf16 products";
  int found = 0;
  for (unsigned number = 1000; number < 1075 && !::testing::Test::HasFailure(); ++number) {
    Draw draw(number);
    Task task = random(draw);
    task.input_types = {draw.chance(70) ? ElementType::bf16 : ElementType::f32};
    task.output_types = {ElementType::bf16};
    const KernelOffer offer = make_onednn_convolution(task);
    if (!offer.kernel) continue;  // what oneDNN computes wrongly
    found += offer.kernel->name().ends_with(gradient);
    EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, 0, DataKind::small_integers))
        << grouped_text(task, number);
    EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, 1e-5)) << grouped_text(task, number);
  }
  EXPECT_GT(found, least);
}

constexpr const char *merged = "gradient of merged groups", *native_gradient = "native gradient";

TEST(MergedGroups, EqualReference) { expect_equal(random_groups, merged, 25); }
TEST(MergedGroups, EqualReferenceInBf16) { expect_equal_in_bf16(random_groups, merged, 25); }
TEST(DepthwiseGradient, EqualsReference) { expect_equal(random_depthwise, native_gradient, 25); }
TEST(DepthwiseGradient, EqualsReferenceInBf16) {
  expect_equal_in_bf16(random_depthwise, native_gradient, 10);
}

bool merges(const Kernel& kernel) { return kernel.name().ends_with(merged); }

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

}  // namespace
}  // namespace cortado::check
