// Every reference kernel against finite differences, and its layer's input boxes against what it reads.
#include "cortado/kernels/reference/chain.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/im2col.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/spp.h"

#include "tests/kernels/check.h"
#include "tests/kernels/pointwise_functions.h"

namespace cortado::check {
namespace {

using Shapes = std::vector<Shape>;

Task training(LayerPtr layer, const Shapes& inputs, int outputs = 1) {
  return whole_task(std::move(layer), Phase::train, inputs, outputs);
}

struct ConvolutionCase {
  Shape input;
  ConvolutionOptions options;
};

const std::vector<ConvolutionCase>& convolution_cases() {
  static const std::vector<ConvolutionCase> cases{
      {{2, 3, 6, 5}, {.num_output = 4, .kernel = {3}, .pad = {1}}},
      {{1, 2, 9, 8}, {.num_output = 3, .kernel = {3}, .stride = {2}, .pad = {1}}},
      {{1, 2, 5, 13}, {.num_output = 2, .kernel = {1, 7}, .stride = {1, 2}, .pad = {0, 3}}},
      {{2, 4, 5, 5}, {.num_output = 6, .bias_term = false, .group = 2, .kernel = {3}}},
      {{1, 4, 5, 5}, {.num_output = 4, .group = 4, .kernel = {3}, .pad = {1}}},
      {{1, 2, 9, 9}, {.num_output = 2, .kernel = {3}, .stride = {2}, .pad = {2}, .dilation = {2}}},
      {{1, 2, 7, 7}, {.num_output = 3, .kernel = {2}, .stride = {3}}},
      {{3, 5, 1, 1}, {.num_output = 4, .kernel = {1}}},
      {{2, 3, 9}, {.num_output = 2, .kernel = {3}, .stride = {2}, .pad = {1}}},
      {{1, 2, 4, 5, 4}, {.num_output = 2, .kernel = {2, 3, 3}, .stride = {2, 1, 1}, .pad = {0, 1, 0}}},
  };
  return cases;
}

TEST(ReferenceGradients, Convolution) {
  for (const auto& [input, options] : convolution_cases()) {
    Task task = training(std::make_shared<Convolution>(options), {input});
    EXPECT_TRUE(gradients_match_differences(task)) << input.text();
    EXPECT_TRUE(input_boxes_hold(task, true)) << input.text();
  }
}

TEST(ReferenceGradients, Deconvolution) {
  for (const auto& [input, options] : convolution_cases()) {
    Task task = training(std::make_shared<Deconvolution>(options), {input});
    EXPECT_TRUE(gradients_match_differences(task)) << input.text();
    EXPECT_TRUE(input_boxes_hold(task, true)) << input.text();
  }
}

TEST(ReferenceGradients, Pooling) {
  using Method = PoolingOptions::Method;
  const std::pair<Shape, PoolingOptions> cases[] = {
      {{2, 3, 6, 6}, {.kernel = {2}, .stride = {2}}},
      {{1, 2, 8, 7}, {.kernel = {3}, .stride = {2}}},
      {{1, 2, 8, 7}, {.kernel = {3}, .stride = {2}, .rounding = Rounding::down}},
      {{1, 2, 7, 7}, {.kernel = {3}, .stride = {2}, .pad = {1}}},
      {{1, 2, 6, 6}, {.kernel = {3, 2}, .stride = {1, 3}, .pad = {1, 0}}},
      {{2, 2, 5, 4}, {.global_pooling = true}},
      {{2, 3, 9}, {.kernel = {3}, .stride = {2}, .pad = {1}}},
      {{1, 2, 4, 5, 6}, {.kernel = {2, 3, 3}, .stride = {2}, .pad = {0, 1, 1}}},
  };
  for (const auto& [input, options] : cases) {
    for (Method method : {Method::max, Method::average}) {
      PoolingOptions each = options;
      each.method = method;
      Task task = training(std::make_shared<Pooling>(each), {input});
      EXPECT_TRUE(gradients_match_differences(task)) << input.text();
      EXPECT_TRUE(input_boxes_hold(task, true)) << input.text();
    }
  }
}

TEST(ReferenceGradients, PoolingWithMaskAndStochasticPooling) {
  Task mask =
      training(std::make_shared<Pooling>(PoolingOptions{.kernel = {3}, .stride = {2}}), {{2, 2, 7, 7}}, 2);
  EXPECT_TRUE(gradients_match_differences(mask, {.objective = {true, false}}));
  PoolingOptions options{.method = PoolingOptions::Method::stochastic, .kernel = {3}, .stride = {2}};
  Task task = training(std::make_shared<Pooling>(options), {{2, 2, 7, 7}});
  EXPECT_TRUE(gradients_match_differences(task, {.inputs = {{.low = 0.1, .high = 1}}}));
}

TEST(ReferenceGradients, Im2col) {
  const std::pair<Shape, Im2colOptions> cases[] = {
      {{2, 3, 6, 5}, {.kernel = {3}, .pad = {1}}},
      {{1, 2, 7, 8}, {.kernel = {2, 3}, .stride = {2, 1}, .pad = {0, 2}, .dilation = {2, 1}}},
      {{2, 2, 9}, {.kernel = {3}, .stride = {2}}},
      {{1, 2, 3, 4, 3}, {.kernel = {2}}},
  };
  for (const auto& [input, options] : cases) {
    Task task = training(std::make_shared<Im2col>(options), {input});
    EXPECT_TRUE(gradients_match_differences(task)) << input.text();
    EXPECT_TRUE(input_boxes_hold(task, false)) << input.text();
  }
}

TEST(ReferenceGradients, Spp) {
  for (const Shape& input : {Shape{2, 2, 9, 7}, Shape{2, 3, 9}, Shape{1, 2, 3, 4, 3}}) {
    for (const auto method : {SppOptions::Method::max, SppOptions::Method::average}) {
      Task task = training(std::make_shared<Spp>(SppOptions{input.rank() == 5 ? 2 : 3, method}), {input});
      EXPECT_TRUE(gradients_match_differences(task)) << input.text();
      EXPECT_TRUE(input_boxes_hold(task, false)) << input.text();
    }
  }
}

TEST(ReferenceGradients, Resampling) {
  using Options = std::variant<UpsampleOptions, InterpOptions>;
  const std::pair<Shapes, Options> cases[] = {
      {{{2, 2, 3, 4}}, UpsampleOptions{}},
      {{{1, 2, 3, 4}}, UpsampleOptions{3, UpsampleOptions::Mode::linear}},
      {{{1, 2, 2, 3, 2}}, UpsampleOptions{2, UpsampleOptions::Mode::linear}},
      {{{2, 2, 5}}, UpsampleOptions{2, UpsampleOptions::Mode::linear}},
      {{{1, 2, 3, 4}}, InterpOptions{.zoom_factor = 3}},
      {{{1, 2, 9, 7}}, InterpOptions{.shrink_factor = 3}},
      {{{1, 2, 5, 4}}, InterpOptions{.height = 7, .width = 3}},
      {{{1, 2, 5, 4}}, InterpOptions{.height = 1, .width = 1}},
      {{{1, 2, 6, 5}}, InterpOptions{.zoom_factor = 2, .pad_begin = -1, .pad_end = -2}},
      {{{1, 2, 5, 4}, {1, 1, 8, 6}}, InterpOptions{}},
  };
  for (const auto& [inputs, options] : cases) {
    Task task = training(std::make_shared<Resampling>(options), inputs);
    EXPECT_TRUE(gradients_match_differences(task)) << inputs[0].text();
    EXPECT_TRUE(input_boxes_hold(task, true)) << inputs[0].text();
  }
}

TEST(ReferenceGradients, InnerProduct) {
  const std::pair<Shape, InnerProductOptions> cases[] = {
      {{3, 2, 4, 3}, {.num_output = 5}},
      {{3, 2, 4, 3}, {.num_output = 5, .transpose = true}},
      {{1, 7}, {.num_output = 3, .bias_term = false}},
      {{2, 3, 4}, {.num_output = 5, .axis = 2}},
      {{2, 3, 4, 2}, {.num_output = 5, .axis = -1}},
      {{4, 3}, {.num_output = 2, .axis = 0}},
  };
  for (const auto& [input, options] : cases) {
    Task task = training(std::make_shared<InnerProduct>(options), {input});
    EXPECT_TRUE(gradients_match_differences(task)) << input.text();
    EXPECT_TRUE(input_boxes_hold(task, true)) << input.text();
  }
}

TEST(ReferenceGradients, Lrn) {
  using Region = LrnOptions::Region;
  for (Shape input : {Shape{2, 7, 3, 2}, Shape{1, 3, 5, 6}, Shape{2, 3, 9}}) {
    for (Region region : {Region::across_channels, Region::within_channel}) {
      for (int64_t size : {3, 5}) {
        Task task = training(
            std::make_shared<Lrn>(LrnOptions{.local_size = size, .k = 1.5, .region = region}), {input});
        EXPECT_TRUE(gradients_match_differences(task)) << input.text();
        EXPECT_TRUE(input_boxes_hold(task, true)) << input.text();
      }
    }
  }
}

TEST(ReferenceGradients, BatchNorm) {
  for (Shape input : {Shape{4, 3, 2, 3}, Shape{5, 3}, Shape{6}, Shape{2, 2, 3, 2, 2}}) {
    EXPECT_TRUE(
        gradients_match_differences(training(std::make_shared<BatchNorm>(BatchNormOptions{}), {input})))
        << input.text();
    Task global = training(std::make_shared<BatchNorm>(BatchNormOptions{.use_global_stats = true}), {input});
    EXPECT_TRUE(gradients_match_differences(global)) << input.text();
    EXPECT_TRUE(input_boxes_hold(global, true)) << input.text();
  }
}

TEST(ReferenceGradients, ScaleAndBias) {
  const std::pair<Shapes, Broadcast> cases[] = {
      {{{2, 3, 4, 5}}, {}},
      {{{2, 3, 4, 5}}, {.axis = 1, .num_axes = -1}},
      {{{2, 3, 4, 5}}, {.axis = 0, .num_axes = 2}},
      {{{2, 3, 4, 5}}, {.axis = 2, .num_axes = 2}},
      {{{2, 3}}, {.num_axes = 0}},
      {{{2, 3, 4, 5}, {3, 4}}, {}},
      {{{2, 3, 4, 5}, {2, 3, 4, 5}}, {.axis = 0}},
      {{{2, 3, 4, 5}, {3, 4, 5}}, {.axis = 1}},
      {{{2, 3, 4, 5}, Shape{}}, {}},
  };
  for (const auto& [inputs, broadcast] : cases) {
    for (bool bias : {false, true}) {
      Task task =
          training(std::make_shared<Scale>(ScaleOptions{.broadcast = broadcast, .bias_term = bias}), inputs);
      EXPECT_TRUE(gradients_match_differences(task)) << inputs[0].text();
      EXPECT_TRUE(input_boxes_hold(task, true)) << inputs[0].text();
    }
    Task task = training(std::make_shared<Bias>(BiasOptions{.broadcast = broadcast}), inputs);
    EXPECT_TRUE(gradients_match_differences(task)) << inputs[0].text();
    EXPECT_TRUE(input_boxes_hold(task, true)) << inputs[0].text();
  }
}

TEST(ReferenceGradients, Pointwise) {
  const std::pair<PointwiseFunction, Values> cases[] = {
      {ReluOptions{}, {}},
      {ReluOptions{.negative_slope = 0.2}, {}},
      {Relu6Options{}, {-4, 10}},
      {EluOptions{.alpha = 0.7}, {}},
      {SigmoidOptions{}, {-4, 4}},
      {TanhOptions{}, {-3, 3}},
      {AbsOptions{}, {}},
      {BnllOptions{}, {-30, 60}},
      {PowerOptions{.power = 2.5, .scale = 0.5, .shift = 1}, {}},
      {PowerOptions{.power = 0, .scale = 0.5, .shift = 1}, {}},
      {PowerOptions{.power = 1, .scale = -2, .shift = 0}, {}},
      {PowerOptions{.power = 2}, {}},
      {ExpOptions{}, {}},
      {ExpOptions{.base = 2, .scale = 3, .shift = -1}, {}},
      {LogOptions{}, {0.5, 3}},
      {LogOptions{.base = 10, .scale = 2, .shift = 3}, {}},
      {SwishOptions{.beta = 1.3}, {-6, 6}},
      {ClipOptions{.min = -0.6, .max = 0.45}, {}},
      {ThresholdOptions{}, {}},
  };
  std::vector<PointwiseFunction> functions;
  for (const auto& [function, values] : cases) {
    functions.push_back(function);
    auto layer = std::make_shared<Pointwise>(function);
    Task task = training(layer, {{2, 3, 4, 3}});
    EXPECT_TRUE(gradients_match_differences(task, {.inputs = {values}})) << layer->type();
    EXPECT_TRUE(input_boxes_hold(task, false, {.inputs = {values}})) << layer->type();
  }
  EXPECT_TRUE(has_every_function(functions));
}

TEST(ReferenceGradients, PReluDropoutMvnAndNormalize) {
  for (bool shared : {false, true}) {
    Task prelu = training(std::make_shared<PRelu>(PReluOptions{.channel_shared = shared}), {{2, 3, 4, 3}});
    EXPECT_TRUE(gradients_match_differences(prelu));
    EXPECT_TRUE(input_boxes_hold(prelu, true));
    for (bool variance : {false, true}) {
      MvnOptions options{.normalize_variance = variance, .across_channels = shared};
      Task mvn = training(std::make_shared<Mvn>(options), {{2, 3, 4, 3}});
      EXPECT_TRUE(gradients_match_differences(mvn));
      EXPECT_TRUE(input_boxes_hold(mvn, true));
    }
  }
  for (bool across : {false, true}) {
    for (bool shared : {false, true}) {
      NormalizeOptions options{.across_spatial = across, .channel_shared = shared, .eps = 0.01};
      Task normalize = training(std::make_shared<Normalize>(options), {{2, 3, 4, 3}});
      EXPECT_TRUE(gradients_match_differences(normalize));
      EXPECT_TRUE(input_boxes_hold(normalize, true));
    }
  }
  Task dropout = training(std::make_shared<Dropout>(DropoutOptions{.ratio = 0.4}), {{2, 3, 4, 3}});
  EXPECT_TRUE(gradients_match_differences(dropout));
  EXPECT_TRUE(input_boxes_hold(dropout, false));
}

TEST(ReferenceGradients, Chains) {
  auto convolution =
      std::make_shared<Convolution>(ConvolutionOptions{.num_output = 4, .kernel = {3}, .pad = {1}});
  auto relu = std::make_shared<Pointwise>(ReluOptions{});
  auto norm = std::make_shared<BatchNorm>(BatchNormOptions{});
  auto scale = std::make_shared<Scale>(ScaleOptions{.bias_term = true});
  auto product = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 5});
  auto tanh = std::make_shared<Pointwise>(TanhOptions{});
  Shape input{2, 3, 5, 4};
  const std::vector<std::vector<LayerPtr>> chains{
      {convolution, relu}, {norm, scale, relu}, {convolution, norm, scale, relu}, {tanh, product, relu}};
  for (const auto& layers : chains) {
    EXPECT_TRUE(gradients_match_differences(chain_task(layers, Phase::train, {&input, 1}))) << layers.size();
  }
}

}  // namespace
}  // namespace cortado::check
