// Pointwise convolutions of tensors in bf16 by our own products of floats, against the reference: random
// shapes, strides, padding and cuts, depths of several blocks, tensors that are written past the caches.
#include <fmt/format.h>

#include "cortado/kernels/lowering/implicit_gemm.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/convolution.h"

#include "tests/kernels/bf16_product.h"
#include "tests/kernels/draw.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/random_products.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

constexpr ElementType types[] = {ElementType::bf16, ElementType::f32};

Task pointwise_in_bf16(int64_t outputs, const Shape& image, int64_t stride = 1, bool bias = true,
                       bool relu = false, int64_t pad = 0) {
  std::vector<LayerPtr> layers{
      std::make_shared<Convolution>(convolution(outputs, {{1}, {stride}, {pad}, {1}}, 1, bias))};
  if (relu) layers.push_back(std::make_shared<Pointwise>(ReluOptions{}));
  Task task = chain_task(std::move(layers), image);
  task.input_types = task.output_types = {ElementType::bf16};
  return task;
}

void expect_products_of_floats(const Task& task) {
  const KernelOffer offer = make_implicit_gemm(task);
  ASSERT_TRUE(offer.kernel) << offer.refusal;
  EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, 0, DataKind::small_integers));
  EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, 1e-5, DataKind::random, true));
}

TEST(ImplicitGemmInBf16, EqualsReference) {
  for (unsigned number = 0; number < 200 && !::testing::Test::HasFailure(); ++number) {
    check::Draw draw(number);
    Shape image{draw(1, 4), draw(1, 70)};
    for (int64_t axes = draw(1, 3); axes > 0; --axes) image.append(draw(1, 9));
    Task task = pointwise_in_bf16(draw(9, 70), image, draw(1, 3), draw.chance(60), draw.chance(30),
                                  draw.chance(25) ? 1 : 0);
    task.input_types = {types[draw.chance(20)]};
    task.output_types = {types[draw.chance(20)]};
    if (draw.chance(40)) task = random_part(draw, task);
    if (task.input_boxes[0].empty()) continue;
    if (draw.chance(15)) task.input_gradients[0] = false;
    if (draw.chance(15)) task.parameter_gradients[0] = false;
    SCOPED_TRACE(text_of_products(task, static_cast<int>(number)));
    expect_products_of_floats(task);
  }
}

// Sums over several blocks of the depth; of threads that sum on their own, and of threads together.
TEST(ImplicitGemmInBf16, EqualsReferenceInSeveralBlocks) {
  expect_products_of_floats(pointwise_in_bf16(32, {1, 1512, 83, 31}));
  expect_products_of_floats(pointwise_in_bf16(1300, {2, 40, 13, 31}));
  expect_products_of_floats(pointwise_in_bf16(66, {1, 2048, 43, 31}, 2));
}

TEST(ImplicitGemmInBf16, EqualsReferencePastTheCaches) {
  for (const Task& task :
       {pointwise_in_bf16(64, {1, 16, 452, 452}), pointwise_in_bf16(16, {1, 64, 452, 452})})
    EXPECT_TRUE(matches_in_bf16(task, *make_implicit_gemm(task).kernel, 0, DataKind::small_integers));
}

TEST(ImplicitGemmInBf16, RefusesWindowsGroupsAndFewOutputs) {
  const auto refusal = [](const LayerPtr& layer) {
    Task task = chain_task({layer}, {2, 8, 5, 5});
    task.input_types = task.output_types = {ElementType::bf16};
    return make_implicit_gemm(task).refusal;
  };
  EXPECT_EQ(refusal(std::make_shared<Convolution>(convolution(8, {}))), "bf16 in windows or groups");
  EXPECT_EQ(refusal(std::make_shared<Convolution>(convolution(8, windows[1], 2))),
            "bf16 in windows or groups");
  EXPECT_EQ(refusal(std::make_shared<Convolution>(convolution(8, windows[1]))), "bf16 of few outputs");
  EXPECT_EQ(refusal(std::make_shared<Convolution>(convolution(9, windows[1]))), "");
}

}  // namespace
}  // namespace cortado::check
