// What is not finite stays so, whatever kernel runs: a NaN or an infinity in an input, a weight or an output
// gradient is seen in what is computed from it.
#include <fmt/format.h>
#include <limits>

#include "cortado/base/compute_threads.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/arg_max.h"
#include "cortado/layers/axpy.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/batch_reindex.h"
#include "cortado/layers/contrastive_loss.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/hinge_loss.h"
#include "cortado/layers/im2col.h"
#include "cortado/layers/infogain_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/multinomial_logistic_loss.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/parameter.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/recurrent.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/sigmoid_cross_entropy_loss.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/layers/spp.h"

#include "tests/kernels/check.h"
#include "tests/kernels/make_layer.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/pointwise_functions.h"

namespace cortado::check {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

Task task_of(LayerPtr layer, std::vector<Shape> inputs, int outputs = 1, Phase phase = Phase::train) {
  return whole_task(std::move(layer), phase, inputs, outputs);
}

void expect_carried(const Task& task, const std::string& name, const CheckOptions& options = {},
                    std::vector<float> values = {not_a_number, infinity, -infinity}) {
  Selection selection = select_kernel(task, name);
  SCOPED_TRACE(fmt::format("{} by {}", task.layer().type(), selection.kernel->name()));
  for (float value : values) EXPECT_TRUE(carries(task, *selection.kernel, value, options));
}

// Every implementation of a chain that begins with a product, with and without the ReLU. On one thread: those
// of BLIS spin at its barriers, which beside other programs takes a minute.
void expect_all_carry(const LayerPtr& product, const Shape& input) {
  const ComputeThreads one(1);
  for (const std::vector<LayerPtr>& layers : {std::vector{product}, std::vector{product, relu()}}) {
    for (const Phase phase : {Phase::train, Phase::test}) {
      const Task task = chain_task(layers, input, phase);
      for (const Implementation& implementation : implementations_of(task, fast_math)) {
        if (!implementation.make(task).kernel) continue;
        // oneDNN's ReLU makes 0 of minus infinity, and nothing notes an infinity that no arithmetic made:
        // finite_test has those of sums.
        const bool hides = implementation.name == "onednn" && layers.size() > 1;
        expect_carried(task, implementation.name, {},
                       hides ? std::vector{not_a_number} : std::vector{not_a_number, infinity, -infinity});
      }
      if (input.size() < 2000) expect_carried(task, "reference");
    }
  }
}

TEST(Carry, Convolutions) {
  const auto convolution = [](int outputs, int kernel, int group = 1) {
    return std::make_shared<Convolution>(
        ConvolutionOptions{.num_output = outputs, .group = group, .kernel = {kernel}, .pad = {kernel / 2}});
  };
  expect_all_carry(convolution(5, 3), {2, 3, 6, 5});
  expect_all_carry(convolution(6, 3, 2), {2, 4, 6, 5});
  expect_all_carry(convolution(16, 1), {2, 16, 4, 4});
  expect_all_carry(convolution(32, 3), {1, 32, 16, 16});
  expect_all_carry(convolution(32, 5), {1, 32, 20, 20});
  expect_all_carry(convolution(4, 3), {2, 3, 4, 5, 4});
  expect_carried(chain_task({convolution(5, 3), relu()}, {2, 3, 6, 5}), "caffe");
}

TEST(Carry, DeconvolutionsAndInnerProducts) {
  ConvolutionOptions options{.num_output = 5, .kernel = {3}};
  expect_all_carry(std::make_shared<Deconvolution>(options), {2, 3, 6, 5});
  expect_all_carry(std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 33}), {7, 50});
  expect_all_carry(std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 64}), {32, 128});
}

TEST(Carry, FunctionsOfOneElement) {
  const std::vector<PointwiseFunction> functions = {ReluOptions{},
                                                    ReluOptions{.negative_slope = 0.1},
                                                    Relu6Options{},
                                                    EluOptions{},
                                                    SigmoidOptions{},
                                                    TanhOptions{},
                                                    AbsOptions{},
                                                    BnllOptions{},
                                                    PowerOptions{.power = 0},
                                                    PowerOptions{.power = -2},
                                                    PowerOptions{.power = 2},
                                                    ExpOptions{},
                                                    LogOptions{},
                                                    SwishOptions{},
                                                    ClipOptions{},
                                                    ThresholdOptions{}};
  EXPECT_TRUE(has_every_function(functions));
  const CheckOptions positive{.inputs = {{.low = 0.1, .high = 2}}};
  for (const char* name : {"native", "reference"}) {
    for (const PointwiseFunction& function : functions) {
      expect_carried(chain_task({std::make_shared<Pointwise>(function)}, {2, 3, 5, 3}), name, positive);
    }
    expect_carried(chain_task({std::make_shared<PRelu>(PReluOptions{})}, {2, 9, 5, 3}), name);
    expect_carried(chain_task({std::make_shared<Dropout>(DropoutOptions{})}, {2, 9, 5, 3}), name);
    expect_carried(chain_task({std::make_shared<Dropout>(DropoutOptions{})}, {2, 9, 5, 3}, Phase::test),
                   name);
  }
}

TEST(Carry, Pooling) {
  using Method = PoolingOptions::Method;
  const CheckOptions positive{.inputs = {{.low = 0.1, .high = 2}}};
  for (const char* name : {"native", "reference"}) {
    for (Method method : {Method::max, Method::average, Method::stochastic}) {
      for (Phase phase : {Phase::train, Phase::test}) {
        const auto pooling = std::make_shared<Pooling>(
            PoolingOptions{.method = method, .kernel = {3}, .stride = {2}, .pad = {}});
        expect_carried(chain_task({pooling}, {2, 9, 7, 7}, phase), method == Method::stochastic ? "" : name,
                       positive);
      }
    }
  }
}

TEST(Carry, PyramidsOfPooling) {
  for (const auto method : {SppOptions::Method::max, SppOptions::Method::average})
    expect_carried(chain_task({std::make_shared<Spp>(SppOptions{2, method})}, {2, 3, 5, 4}), "");
}

TEST(Carry, Normalizations) {
  for (const char* name : {"native", "reference"}) {
    const LayerPtr norm = std::make_shared<BatchNorm>(BatchNormOptions{});
    const LayerPtr scale = std::make_shared<Scale>(ScaleOptions{.bias_term = true});
    for (const auto& layers : std::vector<std::vector<LayerPtr>>{
             {norm}, {norm, relu()}, {norm, scale}, {norm, scale, relu()}, {scale}})
      for (Phase phase : {Phase::train, Phase::test})
        expect_carried(chain_task(layers, {4, 9, 3, 2}, phase), name);
    expect_carried(task_of(std::make_shared<Scale>(ScaleOptions{.broadcast = {.axis = 0}, .bias_term = true}),
                           {{4, 9, 3, 2}, {4, 9}}),
                   name);
    for (double beta : {0.75, 0.5})
      for (const auto region : {LrnOptions::Region::across_channels, LrnOptions::Region::within_channel})
        expect_carried(
            chain_task({std::make_shared<Lrn>(LrnOptions{.beta = beta, .region = region})}, {2, 9, 3, 3}),
            name);
  }
  expect_carried(chain_task({std::make_shared<Mvn>(MvnOptions{})}, {2, 3, 4, 4}), "");
  for (bool across : {false, true})
    expect_carried(
        chain_task({std::make_shared<Normalize>(NormalizeOptions{.across_spatial = across})}, {2, 3, 4, 4}),
        "");
}

TEST(Carry, Recurrent) {
  using Kind = RecurrentOptions::Kind;
  const CheckOptions partly{.inputs = {{}, {.low = 0.5, .high = 1}}};
  for (const char* name : {"native", "reference"}) {
    for (const Kind kind : {Kind::lstm, Kind::rnn}) {
      const RecurrentOptions options{.kind = kind, .num_output = 5, .expose_hidden = true};
      std::vector<Shape> inputs{{3, 2, 4}, {3, 2}, {2, 3}, {1, 2, 5}};
      if (kind == Kind::lstm) inputs.push_back({1, 2, 5});
      expect_carried(task_of(std::make_shared<Recurrent>(options), inputs, kind == Kind::lstm ? 3 : 2), name,
                     partly);
    }
  }
}

TEST(Carry, Eltwise) {
  using Operation = EltwiseOptions::Operation;
  for (const char* name : {"native", "reference"}) {
    for (const EltwiseOptions& options :
         {EltwiseOptions{}, EltwiseOptions{.coeff = {1, 0, -2}}, EltwiseOptions{.operation = Operation::prod},
          EltwiseOptions{.operation = Operation::max}}) {
      const std::vector<Shape> inputs(3, Shape{2, 3, 5, 3});
      const LayerPtr eltwise = std::make_shared<Eltwise>(options);
      expect_carried(task_of(eltwise, inputs), name);
      if (options.operation != Operation::sum) continue;
      expect_carried(cortado::chain_task({eltwise, relu()}, Phase::train, inputs), name);
    }
  }
}

TEST(Carry, LayersThatMoveElements) {
  expect_carried(chain_task({std::make_shared<Permute>(PermuteOptions{.order = {0, 2, 3, 1}})}, {2, 3, 4, 4}),
                 "");
  for (const char* name : {"native", "reference"}) {
    for (const auto mode : {UpsampleOptions::Mode::nearest, UpsampleOptions::Mode::linear})
      expect_carried(chain_task({std::make_shared<Resampling>(UpsampleOptions{2, mode})}, {2, 3, 4, 4}),
                     name);
    expect_carried(task_of(std::make_shared<Axpy>(), {{2, 3}, {2, 3, 4, 4}, {2, 3, 4, 4}}), name);
  }
  expect_carried(chain_task({std::make_shared<Im2col>(Im2colOptions{.kernel = {3}})}, {2, 3, 4, 4}), "");
  expect_carried(task_of(std::make_shared<BatchReindex>(), {{2, 3, 4}, {30}}), "",
                 {.inputs = {{}, {.low = 0, .high = 2, .integers = true}}});
  expect_carried(task_of(std::make_shared<Filter>(FilterOptions{.samples = 3}), {{3, 3, 4}, {3}}), "",
                 {.inputs = {{}, {.low = 1, .high = 3, .integers = true}}});
  expect_carried(task_of(std::make_shared<Parameter>(ParameterOptions{.shape = {2, 3}}), {}), "");
}

TEST(Carry, LossesAndScores) {
  const Shape scores{4, 11}, labels{4};
  const CheckOptions classes{.inputs = {{}, {.low = 0, .high = 11, .integers = true}}};
  for (const char* name : {"native", "reference"}) {
    for (std::optional<int> ignored : {std::optional<int>(), std::optional<int>(3)}) {
      expect_carried(task_of(std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{.ignore_label = ignored}),
                             {scores, labels}),
                     name, classes);
      expect_carried(
          task_of(std::make_shared<Accuracy>(AccuracyOptions{.ignore_label = ignored}), {scores, labels}),
          name, classes);
    }
    expect_carried(task_of(std::make_shared<Softmax>(SoftmaxOptions{}), {scores}), name);
  }
  for (HingeLossOptions::Norm norm : {HingeLossOptions::Norm::l1, HingeLossOptions::Norm::l2})
    expect_carried(task_of(std::make_shared<HingeLoss>(HingeLossOptions{.norm = norm}), {scores, labels}), "",
                   classes);
  expect_carried(task_of(std::make_shared<EuclideanLoss>(), {scores, scores}), "");
  expect_carried(
      task_of(std::make_shared<SigmoidCrossEntropyLoss>(SigmoidCrossEntropyLossOptions{}), {scores, scores}),
      "");
  const CheckOptions probabilities{.inputs = {{.low = 0.1, .high = 1}, classes.inputs[1]}};
  expect_carried(task_of(std::make_shared<MultinomialLogisticLoss>(), {scores, labels}), "", probabilities);
  expect_carried(task_of(std::make_shared<InfogainLoss>(InfogainLossOptions{}), {scores, labels, {11, 11}}),
                 "", classes);
  const CheckOptions pairs{.inputs = {{}, {}, {.low = 0, .high = 2, .integers = true}}};
  for (bool legacy : {false, true})
    expect_carried(
        task_of(std::make_shared<ContrastiveLoss>(ContrastiveLossOptions{.legacy_version = legacy}),
                {scores, scores, labels}),
        "", pairs);
  for (bool value : {false, true})
    expect_carried(task_of(std::make_shared<ArgMax>(ArgMaxOptions{.out_max_val = value}), {scores}), "");
}

}  // namespace
}  // namespace cortado::check
