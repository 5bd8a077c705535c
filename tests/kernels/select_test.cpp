// Tests which implementation a task gets.
#include "cortado/kernels/select.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "cortado/base/bf16.h"
#include "cortado/base/error.h"
#include "cortado/kernels/bf16_products.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/problem.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/split.h"

#include "tests/kernels/buffers.h"
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

// implicit-gemm's products of a few channels would take ten times as long, with any instruction set.
TEST(Select, HasKernelsForNarrowGroups) {
  const auto of_groups = [](int64_t channels, int group) {
    const LayerPtr layer = std::make_shared<Convolution>(
        ConvolutionOptions{.num_output = channels, .group = group, .kernel = {3}, .stride = {2}});
    return select_kernel(chain_task({layer}, {2, channels, 9, 9})).implementation;
  };
  EXPECT_EQ(of_groups(64, 64), "depthwise");
  EXPECT_EQ(of_groups(64, 32), "onednn");
  EXPECT_EQ(of_groups(64, 16), "narrow-groups");
  EXPECT_EQ(of_groups(64, 8), "narrow-groups");
  const bool onednn_first = __builtin_cpu_supports("avx512f");
  EXPECT_EQ(of_groups(128, 2), onednn_first ? "onednn" : "implicit-gemm");
  const LayerPtr depthwise =
      std::make_shared<Convolution>(ConvolutionOptions{.num_output = 64, .group = 64, .kernel = {3}});
  const Task task = chain_task({depthwise}, {2, 64, 9, 9});
  EXPECT_EQ(select_kernel(task, "implicit-gemm").implementation, "implicit-gemm");
}

TEST(Select, TakesItsOwnKernelForPointwiseConvolutionsOfFewChannelsOrManyWeights) {
  if (lowering::vector_lanes < 16) GTEST_SKIP() << "built without AVX-512";
  const auto task = [](int64_t channels, int64_t outputs, int64_t kernel = 1, int64_t stride = 1) {
    const LayerPtr layer = std::make_shared<Convolution>(
        ConvolutionOptions{.num_output = outputs, .kernel = {kernel}, .stride = {stride}});
    return chain_task({layer}, {2, channels, 9, 9});
  };
  const auto implementation = [](const Task& task) { return select_kernel(task).implementation; };
  EXPECT_EQ(implementation(task(16, 96)), "implicit-gemm");
  EXPECT_EQ(implementation(task(96, 32)), "implicit-gemm");
  EXPECT_EQ(implementation(task(256, 128)), "implicit-gemm");
  EXPECT_EQ(implementation(task(512, 2048)), "implicit-gemm");
  EXPECT_EQ(implementation(task(512, 2048, 1, 2)), "implicit-gemm");
  EXPECT_EQ(implementation(task(512, 1024)), "onednn");
  EXPECT_EQ(implementation(task(1040, 1040)), "onednn");
  EXPECT_EQ(implementation(task(96, 48)), "onednn");
  EXPECT_EQ(implementation(task(256, 160)), "onednn");
  EXPECT_EQ(implementation(task(96, 4)), "onednn");
  EXPECT_EQ(implementation(task(16, 96, 2)), "onednn");
  EXPECT_EQ(implementation(task(16, 96, 1, 2)), "onednn");
  Task rectified = task(16, 96);
  rectified.layers.push_back(relu());
  EXPECT_EQ(implementation(rectified), "onednn");
  const auto in_bf16 = [](Task task) {
    task.input_types = task.output_types = {ElementType::bf16};
    return task;
  };
  const Bf16Products products = bf16_products();
  const bool slow = products == Bf16Products::none || products == Bf16Products::slow;
  const char* const expected = slow ? "implicit-gemm" : products == Bf16Products::dots ? "pairs" : "onednn";
  EXPECT_EQ(implementation(in_bf16(task(16, 96))), expected);
  EXPECT_EQ(implementation(in_bf16(task(512, 1024))), expected);
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
  EXPECT_EQ(kernel(layer<ShuffleChannel>(ShuffleChannelOptions{.group = 3}), {image}), "native shuffle");
  EXPECT_EQ(kernel(layer<PRelu>(PReluOptions{}), {image}), "native prelu");
  for (const PointwiseFunction& function : std::vector<PointwiseFunction>{
           SigmoidOptions{}, SwishOptions{}, ClipOptions{.min = 0, .max = 6}, PowerOptions{}, ExpOptions{}})
    EXPECT_TRUE(kernel(layer<Pointwise>(function), {image}).starts_with("native "));
}

TEST(Select, TakesWinogradWhereItIsFaster) {
  const auto wide = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 32, .kernel = {3}});
  const Task task = chain_task({wide}, {2, 32, 16, 16});
  EXPECT_EQ(select_kernel(task).implementation, "winograd-4x4");
  EXPECT_EQ(select_kernel(task, "winograd").implementation, "winograd");
  EXPECT_EQ(select_kernel(task, "implicit-gemm").implementation, "implicit-gemm");
  // Tiles of 4x4 would be less than 5/8 full.
  EXPECT_EQ(select_kernel(chain_task({wide}, {8, 32, 8, 8})).implementation, "winograd");
  const auto five = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 32, .kernel = {5}});
  EXPECT_EQ(select_kernel(chain_task({five}, {2, 32, 20, 20})).implementation, "winograd-5x5");
  EXPECT_NE(selected(convolution), "winograd");
}

// Between few channels of a group Winograd's transforms cost more than they save.
TEST(Select, TakesOnednnForSmallGroups) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512";
  const auto implementation = [](int64_t channels, int64_t groups, int64_t side) {
    const auto layer = std::make_shared<Convolution>(
        ConvolutionOptions{.num_output = channels, .group = groups, .kernel = {3}, .pad = {1}});
    return select_kernel(chain_task({layer}, {4, channels, side, side})).implementation;
  };
  EXPECT_EQ(implementation(512, 32, 14), "onednn");
  EXPECT_EQ(implementation(1024, 32, 7), "onednn");
  EXPECT_EQ(implementation(512, 8, 14), "winograd");
}

// Larger rounding errors than those of sums in float32 are for those who ask.
TEST(Select, TakesFastMathWhereItIsAskedFor) {
  const auto five = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 32, .kernel = {5}});
  const Task task = chain_task({five}, {2, 32, 20, 20});
  EXPECT_EQ(select_kernel(task, fast_math).implementation, "winograd-4x4-of-5x5");
  EXPECT_EQ(select_kernel(task, "winograd-4x4-of-5x5").implementation, "winograd-4x4-of-5x5");
  EXPECT_EQ(select_kernel(task).implementation, "winograd-5x5");
  EXPECT_EQ(select_kernel(chain_task({five}, {2, 32, 16, 16}), fast_math).implementation, "winograd-5x5");
  EXPECT_EQ(selected(convolution, fast_math), selected(convolution));
  EXPECT_EQ(selected(relu(), fast_math), selected(relu()));
  const auto offers = [&](const std::string& only) {
    return std::ranges::any_of(implementations_of(task, only), [](const Implementation& implementation) {
      return implementation.name == "winograd-4x4-of-5x5";
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

// Values of a forward pass, of input i / 8 and weights that bf16 does not hold.
std::vector<float> products_of(const Task& task) {
  const Selection selection = select_kernel(task);
  const Kernel& kernel = *selection.kernel;
  const int64_t read = task.local_input(0).size(), made = task.local_output(0).size();
  std::vector<float> input(read), output(made), weights, bias(8, 0.1f);
  for (int64_t i = 0; i < read; ++i) {
    const float value = static_cast<float>(i % 17 - 8) / 8;
    if (task.input_type(0) == ElementType::bf16) {
      elements<bf16>(input.data())[i] = to_bf16(value);
    } else {
      input[i] = value;
    }
  }
  std::vector<float> canonical(8 * 24);
  for (size_t i = 0; i < canonical.size(); ++i) canonical[i] = 1.0f / static_cast<float>(i + 3);
  const ParameterFormat format = kernel.parameter_format(0);
  weights.resize(std::max<size_t>(canonical.size(), static_cast<size_t>(format.elements)));
  if (format.from_canonical) {
    format.from_canonical(canonical.data(), weights.data());
  } else {
    weights = canonical;
  }
  GuardedBytes scratch(kernel.scratch_bytes().count), saved(kernel.saved_bytes().count);
  selection.kernel->forward({.inputs = {input.data()},
                             .outputs = {output.data()},
                             .output_gradients = {},
                             .input_gradients = {},
                             .parameters = {weights.data(), bias.data()},
                             .parameter_gradients = {},
                             .saved = saved.data(),
                             .scratch = scratch.data(),
                             .random = {}});
  return output;
}

// A layer in f32 multiplies weights as they are, whatever the type of its input.
TEST(Select, ProductsInF32DoNotRoundWeights) {
  const auto layer = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 8});
  const Task f32 = chain_task({layer}, {4, 24}, Phase::test);
  Task reads_bf16 = f32;
  reads_bf16.input_types = {ElementType::bf16};
  reads_bf16.f32_products = true;
  EXPECT_TRUE(select_kernel(reads_bf16).kernel->name().ends_with(", converted"));
  EXPECT_EQ(products_of(reads_bf16), products_of(f32));
  EXPECT_NE(problem_of(reads_bf16).find("f32 products"), std::string::npos);
}

TEST(Select, TakesLargerErrorsForWindowsOf5x5InBf16) {
  const auto five = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 64, .kernel = {5}});
  Task task = chain_task({five}, {2, 64, 20, 20});
  task.input_types = task.output_types = {ElementType::bf16};
  EXPECT_EQ(select_kernel(task).implementation, "winograd-4x4-of-5x5");
}

// Errors that those of bf16 hide are not for a layer in f32.
TEST(Select, LeavesFastMathOutOfProductsInF32) {
  const auto five = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 64, .kernel = {5}});
  Task task = chain_task({five}, {2, 64, 20, 20});
  task.input_types = {ElementType::bf16};
  EXPECT_EQ(select_kernel(task).implementation, "winograd-4x4-of-5x5");
  task.f32_products = true;
  EXPECT_EQ(select_kernel(task).implementation, "winograd-5x5");
}

}  // namespace
}  // namespace cortado::check
