// Pointwise convolutions in bf16 by products of pairs, against the reference: random shapes, strides and
// cuts, several blocks of rows, tensors that are written past the caches, what is not finite.
#include "cortado/kernels/pairs/pairs.h"

#include <fmt/format.h>
#include <limits>

#include "cortado/kernels/bf16_products.h"
#include "cortado/kernels/onednn/engine.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/convolution.h"

#include "tests/kernels/bf16_product.h"
#include "tests/kernels/draw.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

class Pairs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onednn::has_bf16_instructions()) GTEST_SKIP() << "no instructions for bf16 products";
  }
};

Task with_window(const Window& window, int64_t outputs, const Shape& image, bool bias = true,
                 bool relu = false, int64_t group = 1) {
  std::vector<LayerPtr> layers{std::make_shared<Convolution>(convolution(outputs, window, group, bias))};
  if (relu) layers.push_back(std::make_shared<Pointwise>(ReluOptions{}));
  Task task = chain_task(std::move(layers), image);
  task.input_types = task.output_types = {ElementType::bf16};
  return task;
}

Task pointwise(int64_t outputs, const Shape& image, int64_t stride = 1, bool bias = true, bool relu = false) {
  return with_window({{1}, {stride}, {0}, {1}}, outputs, image, bias, relu);
}

// The same channels cut, or samples and an axis of the windows.
Task some_of(const Task& task, Draw& draw) {
  Box box = task.output_boxes[0];
  if (draw.chance(50)) {
    const int64_t begin = draw(0, box[1].end / 2 - 1) * 2;
    box[1] = {begin, begin + 2 * draw(1, (box[1].end - begin) / 2)};
  } else {
    for (const int axis : {0, 2}) {
      const int64_t begin = draw(0, box[axis].end - 1);
      box[axis] = {begin, draw(begin + 1, box[axis].end)};
    }
  }
  return cut_task(task, box);
}

Task random_pointwise(Draw& draw) {
  Shape image{draw(1, 4), 2 * draw(16, 36)};
  for (int64_t axes = draw(1, 3); axes > 0; --axes) image.append(draw(1, 9));
  const bool relu = draw.chance(30);
  Task task = pointwise(2 * draw(16, 36), image, draw(1, 3), draw.chance(60), relu);
  if (!relu && draw.chance(40)) task = some_of(task, draw);
  if (draw.chance(15)) task.input_gradients[0] = false;
  if (draw.chance(15)) task.parameter_gradients[0] = false;
  return task;
}

void expect_reference(const Task& task) {
  const KernelOffer offer = make_pairs(task);
  ASSERT_TRUE(offer.kernel) << offer.refusal;
  EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, 0, DataKind::small_integers));
  EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, 1e-5));
}

TEST_F(Pairs, EqualReference) {
  for (unsigned number = 0; number < 150 && !HasFailure(); ++number) {
    Draw draw(number);
    const Task task = random_pointwise(draw);
    SCOPED_TRACE(fmt::format("case {}: {} to {}, box {}", number, task.inputs[0].text(),
                             task.outputs[0].text(), task.output_boxes[0].text()));
    expect_reference(task);
  }
}

// Of threads that sum on their own, and of threads together; an odd number of rows.
TEST_F(Pairs, EqualReferenceInSeveralBlocks) {
  expect_reference(pointwise(32, {1, 512, 83, 31}));
  expect_reference(pointwise(66, {1, 2048, 43, 31}));
}

TEST_F(Pairs, EqualReferencePastTheCaches) {
  expect_reference(pointwise(64, {1, 16, 452, 452}));
  expect_reference(pointwise(16, {1, 64, 452, 452}));
}

TEST_F(Pairs, CarryWhatIsNotFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const bool relu : {false, true}) {
    const Task task = pointwise(34, {1, 32, 3, 3}, 1, true, relu);
    const KernelOffer offer = make_pairs(task);
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity})
      EXPECT_TRUE(carries_in_bf16(task, *offer.kernel, value)) << value << relu;
    EXPECT_TRUE(carries_overflow_in_bf16(task, *offer.kernel)) << relu;
  }
}

TEST_F(Pairs, TakePointwiseConvolutionsOfEnoughChannels) {
  const auto refusal = [](const Task& task) { return make_pairs(task).refusal; };
  EXPECT_EQ(refusal(pointwise(64, {2, 16, 7, 7})), "");
  EXPECT_EQ(refusal(pointwise(32, {2, 16, 7, 7})), "few channels");
  EXPECT_EQ(refusal(pointwise(12, {2, 96, 7, 7})), "few channels");
  EXPECT_EQ(refusal(pointwise(65, {2, 96, 7, 7})), "an odd number of channels");
  EXPECT_EQ(refusal(with_window({{1}, {1}, {1}, {1}}, 64, {2, 64, 7, 7})), "padding");
  EXPECT_EQ(refusal(with_window({{3}, {1}, {0}, {1}}, 64, {2, 64, 7, 7})), "windows of several pixels");
  EXPECT_EQ(refusal(with_window(windows[1], 64, {2, 64, 7, 7}, true, false, 2)), "several groups");
  Task task = pointwise(64, {2, 64, 7, 7});
  EXPECT_EQ(select_kernel(task).implementation == "pairs", bf16_products() == Bf16Products::dots);
  EXPECT_EQ(make_pairs(task).kernel->parameter_format(0), ParameterFormat{});
  task.output_types = {ElementType::f32};
  EXPECT_EQ(refusal(task), "a tensor in f32");
}

}  // namespace
}  // namespace cortado::check
