// Tests which implementation a task gets.
#include "cortado/kernels/select.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/kernels/kernel.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/pointwise.h"

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
