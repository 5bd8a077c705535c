// oneDNN's kernels for tensors in bf16 against the reference in double. Sums of small integers are exact in
// float: there each result is the right one, rounded once. CORTADO_BF16_CASES chooses how many random tasks.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "cortado/kernels/bf16_products.h"
#include "cortado/kernels/onednn/engine.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/bf16_product.h"
#include "tests/kernels/draw.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/random_products.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

constexpr ElementType narrow = ElementType::bf16, wide = ElementType::f32;
// Tolerance of sums in float, as for kernels in f32.
constexpr double tolerance = 1e-5;

KernelOffer make(const Task& task) {
  if (task.layer().type() == "Convolution") return make_onednn_convolution(task);
  if (task.layer().type() == "Deconvolution") return make_onednn_deconvolution(task);
  return make_onednn_inner_product(task);
}

Task of_types(Task task, ElementType input, ElementType output) {
  task.input_types = {input};
  task.output_types = {output};
  return task;
}

// oneDNN computes these wrongly, so they are refused.
bool is_refused_for_good(const KernelOffer& offer) {
  return offer.refusal == "oneDNN's sums over an odd number of channels" ||
         offer.refusal == "weights that meet only padding" ||
         offer.refusal == "a gradient of one place of one channel" ||
         offer.refusal == "a gradient of dilated 3-D weights" ||
         offer.refusal == "a gradient of volumes' windows none of which is whole";
}

void expect_equal(const Task& task) {
  const KernelOffer offer = make(task);
  if (is_refused_for_good(offer)) return;
  ASSERT_TRUE(offer.kernel) << offer.refusal << " for " << task.inputs[0].text();
  SCOPED_TRACE(offer.kernel->name());
  EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, 0, DataKind::small_integers)) << task.inputs[0].text();
  EXPECT_TRUE(matches_in_bf16(task, *offer.kernel, tolerance)) << task.inputs[0].text();
}

// All that a task may want or not, of all types.
void expect_variants_equal(const Task& whole, bool full = true) {
  expect_equal(of_types(whole, narrow, narrow));
  Task task = of_types(whole, narrow, wide);
  expect_equal(task);
  task = of_types(whole, wide, narrow);
  expect_equal(task);
  if (!full) return;
  task = of_types(whole, narrow, narrow);
  task.canonical_parameters = true;
  expect_equal(task);
  task.canonical_parameters = false;
  task.parameter_gradients[0] = false;
  expect_equal(task);
  std::fill(task.parameter_gradients.begin(), task.parameter_gradients.end(), false);
  expect_equal(task);
  task.input_gradients[0] = false;
  task.phase = Phase::test;
  expect_equal(task);
}

template <typename Layer, typename Options>
void expect_layer_equal(Options options, const Shape& shape) {
  for (const bool bias : {true, false}) {
    options.bias_term = bias;
    const auto layer = std::make_shared<Layer>(options);
    expect_variants_equal(chain_task({layer}, shape), bias);
    expect_variants_equal(chain_task({layer, relu()}, shape), !bias);
  }
}

class OnednnBf16 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onednn::has_bf16_instructions()) GTEST_SKIP() << "no instructions for bf16 products";
  }
};

TEST_F(OnednnBf16, ConvolutionEqualsReference) {
  int64_t outputs = 5, others = 32;
  for (const Window& window : windows)
    for (const Shape& shape : {Shape{2, 3, 9, 11}, Shape{1, 16, 8, 8}, Shape{2, 17, 7, 5}, Shape{2, 6, 13},
                               Shape{1, 4, 5, 6, 7}}) {
      expect_layer_equal<Convolution>(convolution(outputs, window), shape);
      std::swap(outputs, others);
    }
}

TEST_F(OnednnBf16, ConvolutionEqualsReferenceInGroups) {
  for (const int64_t group : {2, 4, 16})
    expect_layer_equal<Convolution>(convolution(32, {}, group), {2, 16, 7, 6});
  expect_layer_equal<Convolution>(convolution(96, {{5}, {1}, {0}, {1}}, 2), {2, 64, 8, 8});
  for (const int64_t channels : {6, 16, 18, 32})  // depthwise
    for (const Window& window : {windows[0], windows[2], windows[4]})
      expect_layer_equal<Convolution>(convolution(channels, window, channels), {2, channels, 9, 10});
}

TEST_F(OnednnBf16, DeconvolutionEqualsReference) {
  for (const Window& window : windows)
    for (const Shape& shape : {Shape{2, 3, 5, 6}, Shape{1, 16, 4, 4}, Shape{2, 6, 7}, Shape{1, 4, 3, 4, 5}})
      expect_layer_equal<Deconvolution>(convolution(8, window), shape);
  expect_layer_equal<Deconvolution>(convolution(8, {{4}, {2}, {1}, {1}}, 4), {2, 16, 5, 5});
  expect_layer_equal<Deconvolution>(convolution(16, {{4}, {2}, {1}, {1}}, 16), {2, 16, 5, 5});
}

TEST_F(OnednnBf16, InnerProductEqualsReference) {
  for (const bool transpose : {false, true})
    for (const int64_t outputs : {17, 64})
      for (const Shape& shape : {Shape{5, 7}, Shape{1, 64}, Shape{33, 128}, Shape{4, 16, 6, 6},
                                 Shape{3, 5, 7}, Shape{2, 3, 2, 3, 4}})
        expect_layer_equal<InnerProduct>(InnerProductOptions{.num_output = outputs, .transpose = transpose},
                                         shape);
}

// Axes of an image are joined, so that oneDNN multiplies matrices; weights lie channels last.
TEST_F(OnednnBf16, InnerProductOfRandomImagesEqualsReference) {
  for (unsigned number = 0; number < 20 && !HasFailure(); ++number) {
    check::Draw draw(number);
    Shape shape{draw(1, 6), draw(1, 40)};
    for (int64_t axes = draw(1, 3); axes > 0; --axes) shape.append(draw(1, 6));
    expect_layer_equal<InnerProduct>(
        InnerProductOptions{.num_output = draw(1, 70), .transpose = draw.chance(50)}, shape);
  }
}

TEST_F(OnednnBf16, InnerProductNamesTheOrderOfItsColumns) {
  const auto layer = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 32});
  auto format = [&](const Shape& shape, Phase phase = Phase::train) {
    return make(of_types(chain_task({layer}, shape, phase), narrow, narrow)).kernel->parameter_format(0);
  };
  EXPECT_TRUE(format({4, 16, 6, 6}).name.ends_with("channels last"));
  EXPECT_EQ(format({4, 16, 6, 6}), format({4, 16, 6, 6}, Phase::test));
  EXPECT_NE(format({4, 16, 6, 6}), format({4, 36, 4, 4}));
  EXPECT_FALSE(format({4, 16, 1, 1}).name.ends_with("channels last"));
}

// With types, and with gradients that are wanted.
Task random_task(check::Draw& draw, bool few) {
  Task task = random_products(draw, few);
  const bool data = draw.chance(25);
  task.input_gradients[0] = !data;
  if (draw.chance(15)) std::fill(task.parameter_gradients.begin(), task.parameter_gradients.end(), false);
  return of_types(task, data ? wide : narrow, !data && draw.chance(25) ? wide : narrow);
}

void expect_random_parts_equal(bool few) {
  const char* text = std::getenv("CORTADO_BF16_CASES");
  const int cases = (few ? 2 : 1) * (text ? std::atoi(text) : 300);
  int made = 0;
  for (int number = 0; number < cases && !::testing::Test::HasFailure(); ++number) {
    check::Draw draw(static_cast<unsigned>(number));
    const Task whole = random_task(draw, few), part = random_part(draw, whole);
    SCOPED_TRACE(text_of_products(part, number));
    if (part.input_boxes[0].empty()) continue;
    const KernelOffer offer = make(part);
    if (!offer.kernel) continue;
    ++made;
    expect_equal(part);
  }
  EXPECT_GE(made, cases / (few ? 4 : 2));
}

// Of volumes whose windows stick out on both sides.
TEST_F(OnednnBf16, WindowsOfEachDepthEqualReference) {
  for (int64_t kernel = 2; kernel <= 4; ++kernel)
    for (int64_t stride = 1; stride <= 4; ++stride)
      for (int64_t pad = 1; pad < kernel; ++pad)
        for (int64_t depth = kernel - 2 * pad > 1 ? kernel - 2 * pad : 1; depth <= 6; ++depth) {
          const Window window{{kernel, 1, 1}, {stride, 1, 1}, {pad, 0, 0}, {1, 1, 1}};
          const auto layer = std::make_shared<Convolution>(convolution(2, window));
          expect_equal(of_types(chain_task({layer}, {2, 2, depth, 3, 3}), narrow, narrow));
        }
}

TEST_F(OnednnBf16, RandomPartsEqualReference) { expect_random_parts_equal(false); }

TEST_F(OnednnBf16, RandomPartsOfFewPixelsEqualReference) { expect_random_parts_equal(true); }

// Weights of a layer that learns, of one that does not and of one that tests lie in one order, or each
// iteration would reorder them.
TEST_F(OnednnBf16, WeightsLieInOneOrderWhateverIsWanted) {
  const auto layer = std::make_shared<Convolution>(convolution(64, {}));
  const Task task = of_types(chain_task({layer, relu()}, {2, 32, 8, 8}), narrow, narrow);
  const ParameterFormat format = make(task).kernel->parameter_format(0);
  EXPECT_NE(format, ParameterFormat{});
  Task other = task;
  std::fill(other.parameter_gradients.begin(), other.parameter_gradients.end(), false);
  EXPECT_EQ(make(other).kernel->parameter_format(0), format);
  other = of_types(chain_task({layer, relu()}, {2, 32, 8, 8}, Phase::test), narrow, narrow);
  EXPECT_EQ(make(other).kernel->parameter_format(0), format);
}

TEST_F(OnednnBf16, WeightsAreNotPaddedToManyTimesTheirSize) {
  const auto layer = std::make_shared<Convolution>(convolution(32, {}, 8));
  const Task task = of_types(chain_task({layer}, {2, 32, 8, 8}), narrow, narrow);
  EXPECT_EQ(make(task).kernel->parameter_format(0), ParameterFormat{});
}

// A processor's products of bf16 note no overflow, so the fused ReLU itself carries what is not finite.
TEST_F(OnednnBf16, CarriesWhatIsNotFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<LayerPtr, Shape>> layers = {
      {std::make_shared<Convolution>(convolution(5, {})), {2, 3, 6, 5}},
      {std::make_shared<Convolution>(convolution(6, {}, 2)), {2, 4, 6, 5}},
      {std::make_shared<Convolution>(convolution(16, windows[1])), {2, 16, 4, 4}},
      {std::make_shared<Convolution>(convolution(16, {}, 16)), {2, 16, 4, 4}},
      {std::make_shared<Convolution>(convolution(4, {})), {2, 3, 4, 5, 4}},
      {std::make_shared<Deconvolution>(convolution(5, {})), {2, 3, 6, 5}},
      {std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 33}), {7, 50}},
      {std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 64}), {32, 128}}};
  for (const auto& [layer, shape] : layers)
    for (const std::vector<LayerPtr>& chain : {std::vector{layer}, std::vector{layer, relu()}})
      for (const Phase phase : {Phase::train, Phase::test})
        for (const ElementType output : {narrow, wide}) {
          const Task task = of_types(chain_task(chain, shape, phase), narrow, output);
          const KernelOffer offer = make(task);
          ASSERT_TRUE(offer.kernel) << offer.refusal;
          for (const float value : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity})
            EXPECT_TRUE(carries_in_bf16(task, *offer.kernel, value)) << offer.kernel->name() << shape.text();
        }
}

// A sum of 64 times -3e38.
TEST_F(OnednnBf16, CarriesASumBeyondFloat) {
  const auto layer = std::make_shared<Convolution>(convolution(16, windows[1]));
  Task task = of_types(chain_task({layer, relu()}, {1, 64, 4, 4}, Phase::test), narrow, narrow);
  const KernelOffer offer = make(task);
  ASSERT_TRUE(offer.kernel) << offer.refusal;
  EXPECT_TRUE(carries_overflow_in_bf16(task, *offer.kernel));
}

TEST_F(OnednnBf16, Refuses) {
  const auto layer = std::make_shared<Convolution>(convolution(4, {}));
  const Task task = chain_task({layer}, {1, 4, 5, 5});
  EXPECT_EQ(make(of_types(task, narrow, ElementType::f64)).refusal, "a tensor of f64");
  const auto point = std::make_shared<Convolution>(convolution(9, windows[1]));
  EXPECT_EQ(make(of_types(chain_task({point}, {1, 4, 5, 6}), narrow, narrow)).refusal,
            "oneDNN's sums over an odd number of channels");
  const auto far = std::make_shared<Convolution>(convolution(4, {{3}, {1}, {6}, {6}}));
  Task apart = of_types(chain_task({far}, {1, 4, 5, 5}), narrow, narrow);
  EXPECT_EQ(make(apart).refusal, "weights that meet only padding");
  std::fill(apart.parameter_gradients.begin(), apart.parameter_gradients.end(), false);
  EXPECT_EQ(make(apart).refusal, "");
  const auto out = std::make_shared<Convolution>(convolution(4, {{3}, {2}, {1}, {1}}));
  EXPECT_EQ(make(of_types(chain_task({out}, {1, 4, 3, 5, 5}), narrow, narrow)).refusal,
            "a gradient of volumes' windows none of which is whole");
  EXPECT_EQ(make(of_types(chain_task({out}, {1, 4, 5, 5, 5}), narrow, narrow)).refusal, "");
  const auto once = std::make_shared<Convolution>(convolution(4, {{1}, {2}, {0}, {1}}));
  EXPECT_EQ(make(of_types(chain_task({once}, {1, 1, 1}), wide, narrow)).refusal,
            "a gradient of one place of one channel");
}

// 26 products for each element of an image and its 64 feature maps: less than their conversions take.
TEST(OnednnBf16Choice, IsNativeBetweenFewChannelsWhereTheProcessorIsSlow) {
  const Task task = of_types(chain_task({std::make_shared<Convolution>(convolution(64, {}))}, {2, 3, 16, 16}),
                             narrow, narrow);
  const bool converted = select_kernel(task).kernel->name().ends_with(", converted");
  EXPECT_EQ(converted, bf16_products() == Bf16Products::none);
}

TEST(OnednnBf16Choice, IsNativeWhereTheProcessorIsFast) {
  const bool has = has_fast_bf16_products();
  const LayerPtr forward = std::make_shared<Convolution>(convolution(16, {}));
  const LayerPtr transposed = std::make_shared<Deconvolution>(convolution(16, {}));
  const LayerPtr product = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 64});
  for (const LayerPtr& layer : {forward, transposed, product}) {
    const Task task = of_types(chain_task({layer, relu()}, {2, 16, 8, 8}), narrow, narrow);
    const Selection selection = select_kernel(task);
    EXPECT_EQ(selection.kernel->name().ends_with(", converted"), !has) << selection.kernel->name();
    if (has) {
      EXPECT_EQ(selection.implementation, "onednn");
    } else {
      EXPECT_TRUE(std::ranges::any_of(selection.refusals, [](const std::string& refusal) {
        return refusal == "onednn: no instructions for bf16 products" ||
               refusal == "onednn: this processor's products of bf16 numbers are not the fastest";
      }));
    }
  }
}

TEST(Bf16Products, AreTakenWhereTheyAreFaster) {
  EXPECT_EQ(bf16_products_of(false, false, 0), Bf16Products::none);
  EXPECT_EQ(bf16_products_of(true, false, 0.25),
            Bf16Products::slow);  // four multiply-adds for the work of two
  EXPECT_EQ(bf16_products_of(true, false, 0.5), Bf16Products::dots);
  EXPECT_EQ(bf16_products_of(true, false, 1), Bf16Products::dots);
  EXPECT_EQ(bf16_products_of(true, true, 0.25), Bf16Products::tiles);
}

TEST(PrecisionWarnings, AreForBf16WithoutFastInstructionsForIt) {
  for (const Bf16Products products : {Bf16Products::none, Bf16Products::slow, Bf16Products::dots})
    EXPECT_TRUE(precision_warnings(Precision::f32, products).empty());
  for (const Bf16Products products : {Bf16Products::dots, Bf16Products::tiles})
    EXPECT_TRUE(precision_warnings(Precision::bf16, products).empty());
  for (const Bf16Products products : {Bf16Products::none, Bf16Products::slow})
    EXPECT_NE(precision_warnings(Precision::bf16, products).at(0).find("stored in bf16 and computed in f32"),
              std::string::npos);
  EXPECT_EQ(precision_warnings(Precision::bf16).empty(), has_fast_bf16_products());
}

}  // namespace
}  // namespace cortado::check
