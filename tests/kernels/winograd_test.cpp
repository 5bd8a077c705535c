// Winograd's convolution against the naive reference: random shapes on small integers (bitwise) and on reals.
#include "cortado/kernels/winograd/winograd.h"

#include <fmt/format.h>

#include "cortado/layers/convolution.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/check.h"
#include "tests/kernels/draw.h"

namespace cortado {
namespace {

using check::DataKind;
using check::matches_reference;

using testing::Draw;

std::string text_of(const Task& task) {
  const auto& options = dynamic_cast<const Convolution&>(task.layer()).options();
  return fmt::format("{} to {} pad [{}] bias {} chain {} box {}", task.inputs[0].text(), options.num_output,
                     fmt::join(options.pad, ","), options.bias_term, task.layers.size(),
                     task.output_boxes[0].text());
}

Task convolution(const Shape& input, const ConvolutionOptions& options) {
  return whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
}

// Cuts the output along samples and space, perhaps to nothing, and gives the input box that part needs.
void cut(Draw& draw, Task& task) {
  Box& box = task.output_boxes[0];
  for (int axis : {0, 2, 3}) {
    const int64_t extent = task.outputs[0][axis], begin = draw(0, extent - 1);
    box[axis] = {begin, draw(begin + (draw.chance(5) ? 0 : 1), extent)};
  }
  task.input_boxes[0] = task.layer().input_box(task.inputs, 0, 0, box);
}

Task random_task(Draw& draw) {
  ConvolutionOptions options{.num_output = draw(1, 70), .bias_term = draw.chance(70), .kernel = {3}};
  options.pad = {draw(0, 2), draw(0, 2)};
  const Shape input{draw(1, 4), draw(1, 60), std::max<int64_t>(1, 3 - 2 * options.pad[0]) + draw(0, 13),
                    std::max<int64_t>(1, 3 - 2 * options.pad[1]) + draw(0, 13)};
  Task task = convolution(input, options);
  if (draw.chance(40))
    task.layers.push_back(std::make_shared<Pointwise>(ReluOptions{draw.chance(50) ? 0.0 : 0.5}));
  if (draw.chance(15)) task.input_gradients[0] = false;
  if (draw.chance(15)) task.parameter_gradients.assign(task.parameter_gradients.size(), false);
  if (draw.chance(10)) task.parameter_gradients[0] = false;
  if (draw.chance(40)) cut(draw, task);
  task.canonical_parameters = draw.chance(15);
  return task;
}

TEST(Winograd, MatchesReference) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    const Task task = random_task(draw);
    const KernelOffer offer = make_winograd_of_any_size(task);
    ASSERT_TRUE(offer.kernel) << text_of(task) << ": " << offer.refusal;
    ASSERT_TRUE(seed % 2 == 0 ? matches_reference(task, *offer.kernel, 0, DataKind::small_integers)
                              : matches_reference(task, *offer.kernel, 1e-5, DataKind::random))
        << "case " << seed << ": " << text_of(task);
  }
}

// Sizes past every block: of depth, of tiles, of image channels.
TEST(Winograd, MatchesReferenceWhereLarge) {
  const std::vector<std::pair<Shape, int64_t>> cases = {{{1, 1300, 5, 5}, 20},
                                                        {{2, 70, 40, 40}, 34},
                                                        {{1, 100, 9, 9}, 140},
                                                        {{30, 16, 18, 18}, 16},
                                                        {{6, 17, 40, 40}, 19}};
  for (const auto& [input, outputs] : cases) {
    const Task task = convolution(input, {.num_output = outputs, .kernel = {3}, .pad = {1}});
    const KernelOffer offer = make_winograd_of_any_size(task);
    ASSERT_TRUE(offer.kernel) << offer.refusal;
    EXPECT_TRUE(matches_reference(task, *offer.kernel, 0, DataKind::small_integers)) << text_of(task);
  }
}

TEST(Winograd, KeepsThePrecisionOfLongSums) {
  const Task task = convolution({2, 48, 56, 56}, {.num_output = 48, .kernel = {3}, .pad = {1}});
  EXPECT_TRUE(matches_reference(task, *make_winograd(task).kernel, 1e-5, DataKind::random));
}

TEST(Winograd, RefusesWithAReason) {
  const auto refusal = [](const ConvolutionOptions& options, const Shape& input = {2, 32, 16, 16}) {
    return make_winograd(convolution(input, options)).refusal;
  };
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}}), "");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {5}}), "windows other than 3x3 with stride 1");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}, .stride = {2}}),
            "windows other than 3x3 with stride 1");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}, .dilation = {2}}),
            "windows other than 3x3 with stride 1");
  EXPECT_EQ(refusal({.num_output = 32, .group = 2, .kernel = {3}}), "2 groups");
  EXPECT_EQ(refusal({.num_output = 15, .kernel = {3}}), "15 channels are too few");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}}, {2, 3, 16, 16}), "3 channels are too few");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}, .pad = {1}}, {1, 32, 8, 8}),
            "16 tiles of 2x2 windows are too few");
  EXPECT_EQ(refusal({.num_output = 32, .kernel = {3}, .pad = {1}}, {16, 32, 3, 3}),
            "3x3 windows waste tiles of 2x2");
  EXPECT_EQ(make_winograd(whole_task(std::make_shared<Pointwise>(ReluOptions{}), Phase::train,
                                     std::vector<Shape>{{2, 32, 16, 16}}, 1))
                .refusal,
            "ReLU is no convolution");
}

}  // namespace
}  // namespace cortado
