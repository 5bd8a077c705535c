// The gradients of convolutions in bf16 by 1x1 windows with few outputs, against the reference: random shapes
// and cuts. And what they are there for: less scratch memory.
#include <fmt/format.h>
#include <limits>

#include "cortado/kernels/onednn/engine.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/layers/convolution.h"

#include "tests/kernels/bf16_product.h"
#include "tests/kernels/draw.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

constexpr const char* native_gradients = "native gradients";

class FewOutputs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onednn::has_bf16_instructions()) GTEST_SKIP() << "no instructions for bf16 products";
  }
};

Task scores(int64_t outputs, const Shape& shape, bool bias = true, Phase phase = Phase::train) {
  Task task =
      chain_task({std::make_shared<Convolution>(convolution(outputs, windows[1], 1, bias))}, shape, phase);
  task.input_types = task.output_types = {ElementType::bf16};
  return task;
}

bool is_native(const Kernel& kernel) { return kernel.name().ends_with(native_gradients); }

// Some of the samples, outputs and rows.
Task random_scores(Draw& draw) {
  Shape shape{draw(1, 4), draw(1, 70)};
  for (int64_t axes = draw(1, 3); axes > 0; --axes) shape.append(draw(1, 13));
  Task task = scores(draw(1, 8), shape, draw.chance(60));
  if (draw.chance(40)) {
    Box box = task.output_boxes[0];
    for (const int axis : {0, 1, 2}) {
      const int64_t begin = draw(0, box[axis].end - 1);
      box[axis] = {begin, draw(begin + 1, box[axis].end)};
    }
    task = cut_task(task, box);
  }
  if (draw.chance(15)) task.input_gradients[0] = false;
  if (draw.chance(15)) task.parameter_gradients[0] = false;
  return task;
}

TEST_F(FewOutputs, GradientsEqualReference) {
  int found = 0;
  for (unsigned number = 0; number < 200 && !HasFailure(); ++number) {
    Draw draw(number);
    const Task task = random_scores(draw);
    SCOPED_TRACE(fmt::format("case {}: {} to {}, box {}", number, task.inputs[0].text(),
                             task.outputs[0].text(), task.output_boxes[0].text()));
    const KernelOffer offer = make_onednn_convolution(task);
    ASSERT_TRUE(offer.kernel) << offer.refusal;
    found += is_native(*offer.kernel);
    EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, 0, DataKind::small_integers));
    EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, 1e-5));
  }
  EXPECT_GT(found, 150);
}

// So large that it is written past the caches.
TEST_F(FewOutputs, GradientsOfALargeImageEqualReference) {
  const Task task = scores(2, {1, 64, 452, 452});
  EXPECT_TRUE(matches_in_bf16(task, *make_onednn_convolution(task).kernel, 0, DataKind::small_integers));
}

TEST_F(FewOutputs, CarryWhatIsNotFinite) {
  const Task task = scores(3, {2, 21, 4, 5});
  const KernelOffer offer = make_onednn_convolution(task);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity})
    EXPECT_TRUE(carries_in_bf16(task, *offer.kernel, value)) << value;
}

TEST_F(FewOutputs, TakeLessScratchMemoryThanTheImage) {
  const Task task = scores(2, {2, 64, 128, 128});
  EXPECT_LT(make_onednn_convolution(task).kernel->scratch_bytes().count, task.inputs[0].size() / 64);
}

TEST_F(FewOutputs, AreThoseOfSmallPlainConvolutions) {
  const auto native = [](const Task& task) { return is_native(*make_onednn_convolution(task).kernel); };
  EXPECT_TRUE(native(scores(8, {2, 16, 7, 7})));
  EXPECT_FALSE(native(scores(10, {2, 16, 7, 7})));
  EXPECT_FALSE(native(scores(8, {2, 16, 7, 7}, true, Phase::test)));
  const auto of = [](const Window& window, int64_t group) {
    Task task = chain_task({std::make_shared<Convolution>(convolution(8, window, group))}, {2, 16, 7, 7});
    task.input_types = task.output_types = {ElementType::bf16};
    return task;
  };
  EXPECT_FALSE(native(of({{1}, {2}, {0}, {1}}, 1)));
  EXPECT_FALSE(native(of({{3}, {1}, {1}, {1}}, 1)));
  EXPECT_FALSE(native(of(windows[1], 2)));
}

TEST_F(FewOutputs, WeightsLieAsInATest) {
  for (const int64_t outputs : {2, 8})
    EXPECT_EQ(make_onednn_convolution(scores(outputs, {2, 16, 7, 7})).kernel->parameter_format(0),
              make_onednn_convolution(scores(outputs, {2, 16, 7, 7}, true, Phase::test))
                  .kernel->parameter_format(0));
}

}  // namespace
}  // namespace cortado::check
