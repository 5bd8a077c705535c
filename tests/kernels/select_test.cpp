// Tests which implementation a task gets.
#include "cortado/kernels/select.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/kernels/kernel.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/split.h"

#include "tests/kernels/make_layer.h"
#include "tests/kernels/native_task.h"

namespace cortado::check {
namespace {

const LayerPtr convolution =
    std::make_shared<Convolution>(ConvolutionOptions{.num_output = 4, .kernel = {3}});
const Shape image{2, 3, 6, 5};

std::string selected(const LayerPtr& layer, const std::string& only = "") {
  return select_kernel(chain_task({layer}, image), only).implementation;
}

TEST(Select, TakesTheReferenceLast) {
  EXPECT_NE(selected(convolution), "reference");
  EXPECT_EQ(selected(relu()), "native");
  EXPECT_EQ(selected(std::make_shared<Mvn>(MvnOptions{})), "reference");
}

// What today's image nets have between their products.
TEST(Select, TakesNativeKernelsForSqueezeAndExcitation) {
  const auto kernel = [](const LayerPtr& layer, const std::vector<Shape>& inputs, int outputs = 1) {
    return select_kernel(whole_task(layer, Phase::train, inputs, outputs)).kernel->name();
  };
  const Shape vector{image[0], image[1]}, wide{image[0], image[1] * 2, image[2], image[3]};
  const auto average = [](std::vector<int64_t> window) {
    return layer<Pooling>(
        PoolingOptions{.method = PoolingOptions::Method::average, .kernel = std::move(window)});
  };
  EXPECT_EQ(kernel(average({6, 5}), {image}), "native global-average-pooling");
  EXPECT_EQ(kernel(average({3}), {image}), "native average-pooling");
  EXPECT_EQ(kernel(layer<Scale>(ScaleOptions{.broadcast = {.axis = 0}}), {image, vector}), "native scale");
  EXPECT_EQ(kernel(layer<Bias>(BiasOptions{.broadcast = {.axis = 0}}), {image, vector}), "native bias");
  EXPECT_EQ(kernel(layer<Split>(), {image}, 2), "native split");
  EXPECT_EQ(kernel(layer<Slice>(SliceOptions{}), {wide}, 2), "native slice");
  EXPECT_EQ(kernel(layer<PRelu>(PReluOptions{}), {image}), "native prelu");
  for (const PointwiseFunction& function : std::vector<PointwiseFunction>{
           SigmoidOptions{}, SwishOptions{}, ClipOptions{.min = 0, .max = 6}, PowerOptions{}, ExpOptions{}})
    EXPECT_TRUE(kernel(layer<Pointwise>(function), {image}).starts_with("native "));
}

TEST(Select, TakesWinogradWhereItIsFaster) {
  const auto wide = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 32, .kernel = {3}});
  const Task task = chain_task({wide}, {2, 32, 16, 16});
  EXPECT_EQ(select_kernel(task).implementation, "winograd");
  EXPECT_EQ(select_kernel(task, "implicit-gemm").implementation, "implicit-gemm");
  EXPECT_NE(selected(convolution), "winograd");
}

// Larger rounding errors than those of sums in float32 are for those who ask.
TEST(Select, TakesFastMathWhereItIsAskedFor) {
  const auto wide = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 32, .kernel = {3}});
  const Task task = chain_task({wide}, {2, 32, 16, 16});
  EXPECT_EQ(select_kernel(task, fast_math).implementation, "winograd-4x4");
  EXPECT_EQ(select_kernel(task, "winograd-4x4").implementation, "winograd-4x4");
  const auto five = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 32, .kernel = {5}});
  EXPECT_EQ(select_kernel(chain_task({five}, {2, 32, 20, 20}), fast_math).implementation, "winograd-5x5");
  EXPECT_NE(select_kernel(chain_task({five}, {2, 32, 20, 20})).implementation, "winograd-5x5");
  EXPECT_EQ(selected(convolution, fast_math), selected(convolution));
  EXPECT_EQ(selected(relu(), fast_math), selected(relu()));
  const auto offers = [&](const std::string& only) {
    return std::ranges::any_of(implementations_of(task, only), [](const Implementation& implementation) {
      return implementation.name == "winograd-4x4";
    });
  };
  EXPECT_TRUE(offers(fast_math));
  EXPECT_FALSE(offers(""));
}

TEST(Select, RestrictsTheLayersThatTheImplementationKnows) {
  for (const char* name :
       {"implicit-gemm", "onednn", "lowering-1", "lowering-2", "lowering-3", "reference"}) {
    EXPECT_EQ(selected(convolution, name), name);
  }
  EXPECT_EQ(selected(relu(), "lowering-1"), "native");
  EXPECT_EQ(selected(relu(), "reference"), "reference");
}

TEST(Select, TellsWhyOthersRefused) {
  Task chain = chain_task({convolution, std::make_shared<Pointwise>(EluOptions{})}, image);
  Selection selection = select_kernel(chain, "lowering-1");
  EXPECT_EQ(selection.implementation, "reference");
  ASSERT_EQ(selection.refusals.size(), 1u);
  EXPECT_TRUE(selection.refusals[0].starts_with("lowering-1: ")) << selection.refusals[0];
}

TEST(Select, RefusesUnknownNames) {
  try {
    select_kernel(chain_task({relu()}, image), "onednnn");
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'onednn'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cortado::check
