// Kernels of bf16 tensors against the reference in double: random layers, shapes and cuts, whole layers with
// channel counts that lanes do not divide, tensors large enough to be written past the caches; and which
// layers have such kernels.
#include "cortado/base/bf16.h"

#include <algorithm>
#include <iostream>
#include <random>

#include "cortado/base/random.h"
#include "cortado/kernels/arrays.h"
#include "cortado/kernels/native/simd.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/flatten.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/reshape.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/layers/split.h"

#include "tests/kernels/bf16_run.h"
#include "tests/kernels/buffers.h"
#include "tests/kernels/cut_cases.h"
#include "tests/kernels/make_layer.h"

namespace cortado::check {
namespace {

bool is_native(const Selection& selection) {
  return selection.implementation == "native" && !selection.kernel->name().ends_with(", converted");
}

class Bf16Layer : public testing::TestWithParam<int> {};

// Layers of products are not among them: their weights are read as bf16.
TEST_P(Bf16Layer, EqualsReferenceAndIsNativeWhereF32Is) {
  const uint64_t seed = number_from("CORTADO_CUT_SEED", 1), cases = number_from("CORTADO_CUT_CASES", 30);
  int native = 0;
  for (uint64_t number = 0; number < cases && !HasFailure(); ++number) {
    std::mt19937_64 generator(seed * 1000003 + number * 131 + GetParam());
    const CutCase cut = random_cut_case(GetParam(), generator);
    EXPECT_TRUE(equals_reference_in_bf16(cut)) << cut.text() << "\ncase " << number;
    for (const Task& task : device_tasks(cut, whole_task(cut))) {
      if (select_kernel(task).implementation != "native") continue;
      EXPECT_TRUE(is_native(select_kernel(in_bf16(task, cut.data)))) << cut.text() << "\ncase " << number;
      ++native;
    }
  }
  std::cout << cut_kind_name(GetParam()) << ": seed " << seed << ", " << cases << " cases, " << native
            << " native kernels\n";
}

std::vector<int> kinds_without_products() {
  std::vector<int> kinds;
  for (int kind = 0; kind < cut_kinds(); ++kind) {
    const std::string name = cut_kind_name(kind);
    if (name.find("convolution") == name.npos && name != "inner product" && name != "recurrent")
      kinds.push_back(kind);
  }
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Kinds, Bf16Layer, testing::ValuesIn(kinds_without_products()));

// All layers that have native kernels, on input 0 of that shape: matrices and images.
std::vector<CutCase> native_cases(const Shape& shape) {
  std::vector<CutCase> cases;
  auto add = [&](std::vector<LayerPtr> layers, std::vector<Shape> inputs = {}, int outputs = 1) -> CutCase& {
    if (inputs.empty()) inputs = {shape};
    return cases.emplace_back(
        CutCase{.layers = std::move(layers), .inputs = std::move(inputs), .outputs = outputs});
  };
  const PointwiseFunction functions[] = {ReluOptions{},
                                         ReluOptions{.negative_slope = 0.25},
                                         EluOptions{},
                                         SigmoidOptions{},
                                         TanhOptions{},
                                         AbsOptions{},
                                         BnllOptions{},
                                         ExpOptions{},
                                         SwishOptions{},
                                         PowerOptions{.power = 2, .scale = 0.5, .shift = 1},
                                         ClipOptions{.min = -0.5, .max = 0.5}};
  for (const PointwiseFunction& function : functions) add({layer<Pointwise>(function)});
  add({layer<Pointwise>(LogOptions{})}).data.inputs = {{.low = 0.5, .high = 4}};
  for (const bool global : {false, true}) {
    BatchNormOptions norm{.eps = 0.1};
    if (global) norm.use_global_stats = true;
    add({layer<BatchNorm>(norm)});
    add({layer<BatchNorm>(norm), relu()});
    add({layer<BatchNorm>(norm), layer<Scale>(ScaleOptions{.bias_term = true})});
    add({layer<BatchNorm>(norm), layer<Scale>(ScaleOptions{.bias_term = true}), relu()});
  }
  add({layer<Scale>(ScaleOptions{})});
  add({layer<Scale>(ScaleOptions{.bias_term = true})});
  add({layer<Bias>(BiasOptions{})});
  const Shape of_channels{shape[0], shape[1]};
  add({layer<Scale>(ScaleOptions{.broadcast = {.axis = 0}, .bias_term = true})}, {shape, of_channels});
  add({layer<Bias>(BiasOptions{.broadcast = {.axis = 0}})}, {shape, of_channels});
  add({layer<Scale>(ScaleOptions{.broadcast = {.axis = 0}})}, {shape, {shape[0]}});
  add({layer<Scale>(ScaleOptions{.broadcast = {.axis = 1, .num_axes = -1}})});
  add({layer<PRelu>(PReluOptions{.channel_shared = true})});
  add({layer<Split>()}, {}, 3);
  if (shape.rank() > 2)
    add({layer<Pooling>(PoolingOptions{.method = PoolingOptions::Method::average, .global_pooling = true})});
  add({layer<PRelu>(PReluOptions{})});
  add({layer<Dropout>(DropoutOptions{.ratio = 0.4})});
  add({layer<Lrn>(LrnOptions{.local_size = 5, .alpha = 0.5})});
  add({layer<Lrn>(LrnOptions{.local_size = 3, .alpha = 0.5, .beta = 0.6})});
  add({layer<Softmax>(SoftmaxOptions{})});
  add({layer<Flatten>(FlattenOptions{})});
  add({layer<Reshape>(ReshapeOptions{.shape = {0, -1, 1}})});
  add({layer<Concat>(ConcatOptions{})}, {shape, shape, shape});
  if (shape[1] > 3) add({layer<Slice>(SliceOptions{.axis = 1, .slice_points = {3}})}, {}, 2);
  using Operation = EltwiseOptions::Operation;
  for (const auto operation : {Operation::sum, Operation::prod, Operation::max})
    for (int count : {2, 3})
      add({layer<Eltwise>(EltwiseOptions{.operation = operation})}, std::vector<Shape>(count, shape));
  add({layer<Eltwise>(EltwiseOptions{}), relu()}, {shape, shape});
  add({layer<Eltwise>(EltwiseOptions{.coeff = {0.5, -1.5}}), relu()}, {shape, shape});
  Shape labels{shape[0]};
  for (int axis = 2; axis < shape.rank(); ++axis) labels.append(shape[axis]);
  const std::vector<Values> values = {{.low = -3, .high = 3}, {0, static_cast<double>(shape[1]), true}};
  for (const double smoothing : {0.0, 0.1})
    add({layer<SoftmaxLoss>(SoftmaxLossOptions{.label_smoothing = smoothing})}, {shape, labels}, 2)
        .data.inputs = values;
  CutCase& accuracy = add({layer<Accuracy>(AccuracyOptions{})}, {shape, labels});
  accuracy.data.inputs = values;
  accuracy.phase = Phase::test;
  return cases;
}

void add_image_cases(const Shape& shape, std::vector<CutCase>& cases) {
  for (const auto method : {PoolingOptions::Method::max, PoolingOptions::Method::average}) {
    PoolingOptions options{.method = method, .kernel = {3}, .stride = {2}};
    cases.push_back({.layers = {layer<Pooling>(options)}, .inputs = {shape}});
    cases.push_back({.layers = {layer<Pooling>(PoolingOptions{.method = method, .global_pooling = true})},
                     .inputs = {shape}});
  }
  const LrnOptions within{.local_size = 3, .alpha = 0.5, .region = LrnOptions::Region::within_channel};
  if (shape.rank() == 4) cases.push_back({.layers = {layer<Lrn>(within)}, .inputs = {shape}});
  Shape smaller = shape;
  for (int axis = 2; axis < shape.rank(); ++axis) smaller.set(axis, shape[axis] - 1);
  cases.push_back({.layers = {layer<Crop>(CropOptions{.offset = {1}})}, .inputs = {shape, smaller}});
}

TEST(Bf16, EveryNativeKernelEqualsReference) {
  for (const Shape& shape :
       {Shape{4, 3}, Shape{70, 16}, Shape{33, 100}, Shape{1, 5, 7, 3}, Shape{2, 17, 9, 11},
        Shape{3, 64, 6, 7}, Shape{2, 8, 150}, Shape{2, 6, 3, 4, 5}}) {
    std::vector<CutCase> cases = native_cases(shape);
    if (shape.rank() > 2) add_image_cases(shape, cases);
    for (CutCase& cut : cases) {
      EXPECT_TRUE(is_native(select_kernel(in_bf16(whole_task(cut), cut.data)))) << cut.text();
      EXPECT_TRUE(equals_reference_in_bf16(cut)) << cut.text();
      cut.frozen = true;
      EXPECT_TRUE(equals_reference_in_bf16(cut)) << cut.text();
      cut.phase = Phase::test;
      EXPECT_TRUE(equals_reference_in_bf16(cut)) << cut.text();
    }
  }
}

// A window of several lists of positions: its sum is rounded once.
TEST(Bf16, WindowsOfWholeImagesAreAveragedInFloat) {
  for (const auto method : {PoolingOptions::Method::max, PoolingOptions::Method::average}) {
    const PoolingOptions options{.method = method, .global_pooling = true};
    CutCase cut{.layers = {layer<Pooling>(options)}, .inputs = {{2, 11, 90, 110}}};
    cut.data.inputs = {{.low = 1, .high = 1.5}};
    EXPECT_TRUE(equals_reference_in_bf16(cut)) << cut.text();
  }
}

// Outputs of a forward pass over one image, of rows first to last of each input (channels last: a block).
std::vector<bf16> forward_of_rows(const LayerPtr& layer, const std::vector<Shape>& inputs,
                                  const std::vector<std::vector<bf16>>& images, Range rows) {
  CutCase cut{.layers = {layer}, .inputs = inputs, .phase = Phase::test};
  for (Shape& shape : cut.inputs) shape.set(2, rows.size());
  const Task task = in_bf16(whole_task(cut), {});
  const auto kernel = select_kernel(task).kernel;
  Buffer<bf16> output(task.outputs[0].size());
  std::vector<float> scale(task.outputs[0][1], 0.75F);
  Buffer<std::byte> scratch(kernel->scratch_bytes().count);
  Arguments arguments{.scratch = scratch.data()};
  for (size_t i = 0; i < images.size(); ++i) {
    const bf16* first = images[i].data() + rows.begin * inputs[i][1] * inputs[i][3];
    arguments.inputs.push_back(elements<float>(first));
  }
  arguments.outputs = {elements<float>(output.data())};
  arguments.parameters = {scale.data()};
  kernel->forward(arguments);
  EXPECT_TRUE(output.intact() && scratch.intact());
  return output.values();
}

// Above 24 MiB of bf16 in a tensor, its stores pass the caches: the same bits as by pieces that do not.
TEST(Bf16, LargeTensorsAreWrittenPastTheCaches) {
  const std::vector<Shape> one = {{1, 64, 445, 445}}, two = {{1, 48, 445, 445}, {1, 16, 445, 445}};
  ASSERT_GE(bytes_of(one[0], ElementType::bf16).count, native::streaming_bytes);
  const std::pair<LayerPtr, std::vector<Shape>> cases[] = {
      {relu(), one},
      {layer<Scale>(ScaleOptions{}), one},
      {layer<Pooling>(PoolingOptions{.kernel = {1}}), one},
      {layer<Concat>(ConcatOptions{}), two}};
  for (const auto& [layer, inputs] : cases) {
    std::vector<std::vector<bf16>> images;
    for (const Shape& shape : inputs) {
      images.emplace_back(shape.size());
      for (size_t i = 0; i < images.back().size(); ++i)
        images.back()[i] = to_bf16(static_cast<float>(static_cast<int64_t>(i * 2654435761U % 2003) - 1001));
    }
    std::vector<bf16> pieces;
    for (int64_t row = 0; row < 445; row += 89) {
      const std::vector<bf16> piece = forward_of_rows(layer, inputs, images, {row, row + 89});
      pieces.insert(pieces.end(), piece.begin(), piece.end());
    }
    EXPECT_TRUE(forward_of_rows(layer, inputs, images, {0, 445}) == pieces) << layer->type();
  }
}

std::string selected(const CutCase& cut) {
  return select_kernel(in_bf16(whole_task(cut), cut.data)).kernel->name();
}

TEST(Bf16, OtherLayersAreConverted) {
  EXPECT_EQ(selected({.layers = {relu()}, .inputs = {{2, 3}}}), "native ReLU");
  EXPECT_EQ(selected({.layers = {layer<Mvn>(MvnOptions{})}, .inputs = {{2, 3, 4, 5}}}),
            "reference, converted");
}

// The kernels that refuse several types are those that are converted.
TEST(Bf16, InputsOfSeveralTypesAreConverted) {
  const CutCase sum{.layers = {layer<Eltwise>(EltwiseOptions{})}, .inputs = {{2, 3}, {2, 3}}};
  Task task = in_bf16(whole_task(sum), sum.data);
  task.input_types[1] = ElementType::f32;
  const Selection selection = select_kernel(task);
  EXPECT_EQ(selection.kernel->name(), "native sum, converted");
  ASSERT_EQ(selection.refusals.size(), 1u);
  EXPECT_EQ(selection.refusals[0], "native: inputs of several types");
}

TEST(Bf16, GradientsAreAddedInFloat) {
  for (int64_t count : {0, 1, 7, 100, 8192, 100003}) {
    std::vector<std::vector<bf16>> terms(6, std::vector<bf16>(count));
    std::vector<const bf16*> pointers;
    for (size_t t = 0; t < terms.size(); ++t) {
      for (int64_t i = 0; i < count; ++i)
        terms[t][i] =
            to_bf16(static_cast<float>(RandomStream{.seed = 5}.uniform(i, static_cast<uint32_t>(t), -1, 1)));
      pointers.push_back(terms[t].data());
    }
    for (size_t used = 1; used <= terms.size(); ++used) {
      std::vector<bf16> expected(count), actual(count);
      for (int64_t i = 0; i < count; ++i) {
        float total = 0;
        for (size_t t = 0; t < used; ++t) total += to_float(terms[t][i]);
        expected[i] = to_bf16(total);
      }
      arrays::sum(actual.data(), std::span(pointers).first(used), count);
      EXPECT_TRUE(actual == expected) << used << " terms of " << count;
    }
  }
}

}  // namespace
}  // namespace cortado::check
