// Nets go to ONNX and, by the importer, back: each gives the same outputs. operators_as_pytorch.py compares
// the importer with PyTorch.
#include "cortado/onnx/export.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "tests/net/net_testing.h"
#include "tests/onnx/run_net.h"

namespace cortado::testing {
namespace {

constexpr const char* images =
    R"(layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 4 dim: 7 dim: 6 } } }
)";
constexpr const char* rows =
    R"(layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 3 dim: 4 dim: 5 } } }
)";

Blob drawn(const Shape& shape, std::mt19937& random) {
  std::uniform_real_distribution<float> draw(0.2f, 1.2f);
  Blob blob{shape, std::vector<float>(static_cast<size_t>(shape.size()))};
  for (float& value : blob.values) value = draw(random);
  return blob;
}

// The largest difference between a net's outputs and those of the net that came back.
double difference_after(const std::string& text) {
  const LoadedNetwork loaded = load(text, Phase::test);
  RunnableNet net(loaded.network);
  std::mt19937 random(3);
  for (ParameterIndex p : indices(loaded.network.parameters()))
    net.set(p, drawn(loaded.network.parameters()[p].spec.shape, random).values);
  NamedValues inputs;
  for (TensorIndex top : loaded.network.nodes()[NodeIndex(0)].outputs)
    inputs[loaded.network.tensors()[top].name] = drawn(loaded.network.tensors()[top].shape, random);
  const NamedValues before = net.run(inputs);
  const onnx::ExportedModel exported =
      onnx::export_network(loaded.network, [&](ParameterIndex p) { return net.values(p); });
  const int64_t batch = inputs.begin()->second.shape[0];
  const NamedValues after =
      run_imported(onnx::import_model(exported.model, "back.onnx", {.batch = batch}), inputs);
  double worst = before.empty() || before.size() != after.size() ? INFINITY : 0;
  for (const auto& [name, blob] : before) {
    const auto other = after.find(name);
    if (other == after.end() || other->second.shape != blob.shape) return INFINITY;
    for (size_t i = 0; i < blob.values.size(); ++i) {
      const double distance = std::abs(double{blob.values[i]} - other->second.values[i]);
      worst = std::max(worst, distance / std::max(1.0, std::abs(double{blob.values[i]})));
      if (std::isnan(distance)) return INFINITY;
    }
  }
  return worst;
}

struct LayerCase {
  const char* name;
  const char* source;
  const char* layers;
};
void PrintTo(const LayerCase& one, std::ostream* out) { *out << one.name; }

class ExportedLayer : public ::testing::TestWithParam<LayerCase> {};

TEST_P(ExportedLayer, ComesBack) {
  EXPECT_LT(difference_after(std::string(GetParam().source) + GetParam().layers), 1e-5);
}

#define LAYER(type, options) "layer { name: \"y\" type: \"" type "\" bottom: \"x\" top: \"y\" " options " }"

INSTANTIATE_TEST_SUITE_P(
    All, ExportedLayer,
    ::testing::Values(
        LayerCase{"Convolution", images,
                  LAYER("Convolution",
                        "convolution_param { num_output: 6 kernel_size: 3 stride: 2 pad: 1 group: 2 }")},
        LayerCase{
            "Deconvolution", images,
            LAYER("Deconvolution",
                  "convolution_param { num_output: 3 kernel_h: 3 kernel_w: 2 stride: 2 bias_term: false }")},
        LayerCase{"MaxOverEnd", images, LAYER("Pooling", "pooling_param { kernel_size: 3 stride: 2 }")},
        LayerCase{"MaxFloor", images,
                  LAYER("Pooling", "pooling_param { kernel_size: 2 stride: 2 pad: 1 round_mode: FLOOR }")},
        LayerCase{"AverageOverEnd", images,
                  LAYER("Pooling", "pooling_param { pool: AVE kernel_size: 4 stride: 2 }")},
        LayerCase{"AveragePadded", images,
                  LAYER("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }")},
        LayerCase{"GlobalAverage", images,
                  LAYER("Pooling", "pooling_param { pool: AVE global_pooling: true }")},
        LayerCase{"InnerProduct", images, LAYER("InnerProduct", "inner_product_param { num_output: 5 }")},
        LayerCase{
            "InnerProductTransposed", rows,
            LAYER("InnerProduct", "inner_product_param { num_output: 5 transpose: true bias_term: false }")},
        LayerCase{"InnerProductLast", rows,
                  LAYER("InnerProduct", "inner_product_param { num_output: 3 axis: 2 }")},
        LayerCase{"BatchNorm", images, LAYER("BatchNorm", "batch_norm_param { eps: 0.01 }")},
        LayerCase{"BatchNormScale", images,
                  LAYER("BatchNorm",
                        "") "layer { name: \"s\" type: \"Scale\" bottom: \"y\" top: \"y\" scale_param { "
                            "bias_term: true } }"},
        LayerCase{"Scale", images, LAYER("Scale", "scale_param { axis: 2 num_axes: 1 bias_term: true }")},
        LayerCase{
            "ScaleBySecond", images,
            "layer { name: \"g\" type: \"Pooling\" bottom: \"x\" top: \"g\" pooling_param { global_pooling: "
            "true } "
            "} layer { name: \"f\" type: \"Flatten\" bottom: \"g\" top: \"f\" } layer { name: \"y\" type: "
            "\"Scale\" bottom: \"x\" bottom: \"f\" top: \"y\" scale_param { axis: 0 } }"},
        LayerCase{"Bias", images, LAYER("Bias", "bias_param { axis: 1 num_axes: 2 }")},
        LayerCase{"PReLU", images,
                  "layer { name: \"p\" type: \"Power\" bottom: \"x\" top: \"p\" power_param { shift: "
                  "-0.7 } } layer { name: \"y\" type: \"PReLU\" bottom: \"p\" top: \"y\" }"},
        LayerCase{"Lrn", images, LAYER("LRN", "lrn_param { local_size: 3 alpha: 0.5 k: 2 }")},
        LayerCase{"LrnWithin", images,
                  LAYER("LRN", "lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }")},
        LayerCase{"Mvn", images, LAYER("MVN", "")},
        LayerCase{"Normalize", images,
                  LAYER("Normalize", "norm_param { across_spatial: false channel_shared: false }")},
        LayerCase{"NormalizeSamples", images, LAYER("Normalize", "")},
        LayerCase{"MvnAcross", images, LAYER("MVN", "mvn_param { across_channels: true eps: 0.01 }")},
        LayerCase{"MvnMean", images, LAYER("MVN", "mvn_param { normalize_variance: false }")},
        LayerCase{"Power", images, LAYER("Power", "power_param { power: 1.5 scale: 2 shift: 1 }")},
        LayerCase{"PowerShift", images, LAYER("Power", "power_param { shift: 1 }")},
        LayerCase{"Exp", images, LAYER("Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }")},
        LayerCase{"Log", images, LAYER("Log", "log_param { base: 10 scale: 2 shift: 1 }")},
        LayerCase{"Swish", images, LAYER("Swish", "swish_param { beta: 1.5 }")},
        LayerCase{"Clip", images, LAYER("Clip", "clip_param { min: 0.4 max: 0.9 }")},
        LayerCase{"Relu6", images, LAYER("ReLU6", "")},
        LayerCase{"Elu", images, LAYER("ELU", "elu_param { alpha: 0.5 }")},
        LayerCase{"Bnll", images, LAYER("BNLL", "")},
        LayerCase{"Dropout", images, LAYER("Dropout", "dropout_param { dropout_ratio: 0.3 }")},
        LayerCase{"Softmax", rows, LAYER("Softmax", "softmax_param { axis: -1 }")},
        LayerCase{"EltwiseSum", images,
                  "layer { name: \"r\" type: \"TanH\" bottom: \"x\" top: \"r\" } layer { name: \"y\" type: "
                  "\"Eltwise\" "
                  "bottom: \"x\" bottom: \"r\" bottom: \"x\" top: \"y\" eltwise_param { coeff: 2 coeff: -1 "
                  "coeff: 1 } }"},
        LayerCase{
            "EltwiseProduct", images,
            "layer { name: \"y\" type: \"Eltwise\" bottom: \"x\" bottom: \"x\" bottom: \"x\" top: \"y\" "
            "eltwise_param { operation: PROD } }"},
        LayerCase{"Slice", images,
                  "layer { name: \"s\" type: \"Slice\" bottom: \"x\" top: \"a\" top: \"b\" top: \"c\" "
                  "slice_param { "
                  "slice_point: 1 slice_point: 3 } } layer { name: \"q\" type: \"Silence\" bottom: \"b\" }"},
        LayerCase{"Split", images,
                  "layer { name: \"s\" type: \"Split\" bottom: \"x\" top: \"a\" top: \"b\" } layer { name: "
                  "\"y\" type: "
                  "\"Concat\" bottom: \"a\" bottom: \"b\" top: \"y\" concat_param { axis: 2 } }"},
        LayerCase{"Reshape", images,
                  LAYER("Reshape", "reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 6 } }")},
        LayerCase{"ReshapeSamples", images, LAYER("Reshape", "reshape_param { shape { dim: -1 dim: 42 } }")},
        LayerCase{"Crop", images,
                  "layer { name: \"p\" type: \"Pooling\" bottom: \"x\" top: \"p\" pooling_param { "
                  "kernel_size: 3 } } "
                  "layer { name: \"y\" type: \"Crop\" bottom: \"x\" bottom: \"p\" top: \"y\" crop_param { "
                  "offset: 1 } } "
                  "layer { name: \"q\" type: \"Eltwise\" bottom: \"y\" bottom: \"p\" top: \"q\" }"},
        LayerCase{"ReductionSum", images, LAYER("Reduction", "reduction_param { axis: 1 coeff: 0.5 }")},
        LayerCase{"ReductionMean", images, LAYER("Reduction", "reduction_param { axis: 2 operation: MEAN }")},
        LayerCase{"ReductionSquares", images,
                  LAYER("Reduction", "reduction_param { axis: 3 operation: SUMSQ }")},
        LayerCase{"Permute", images,
                  LAYER("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }")},
        LayerCase{"UpsampleNearest", images, LAYER("Upsample", "upsample_param { scale: 3 }")},
        LayerCase{"UpsampleLinear", images, LAYER("Upsample", "upsample_param { mode: BILINEAR }")},
        LayerCase{"InterpSize", images,
                  LAYER("Interp", "interp_param { height: 3 width: 11 pad_beg: -1 pad_end: -1 }")},
        LayerCase{"InterpZoom", images, LAYER("Interp", "interp_param { zoom_factor: 2 }")},
        LayerCase{"Tile", images, LAYER("Tile", "tile_param { axis: 2 tiles: 3 }")},
        LayerCase{"ShuffleChannel", images, LAYER("ShuffleChannel", "shuffle_channel_param { group: 2 }")}),
    [](const auto& info) { return info.param.name; });

onnx::ExportedModel exported(const std::string& text) {
  const LoadedNetwork loaded = load(text, Phase::test);
  RunnableNet net(loaded.network);
  return onnx::export_network(loaded.network, [&](ParameterIndex p) { return net.values(p); });
}

TEST(ExportOnnx, LossesAreLeftOut) {
  const onnx::ExportedModel model = exported(
      "layer { name: \"d\" type: \"DummyData\" top: \"x\" top: \"l\" dummy_data_param { shape { dim: 2 dim: "
      "4 } shape { "
      "dim: 2 } } } layer { name: \"f\" type: \"InnerProduct\" bottom: \"x\" top: \"f\" inner_product_param "
      "{ "
      "num_output: 3 } } layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"f\" bottom: \"l\" }");
  const onnx::GraphProto& graph = model.model.graph();
  ASSERT_EQ(graph.input_size(), 1);
  EXPECT_EQ(graph.input(0).name(), "x");
  EXPECT_EQ(graph.input(0).type().tensor_type().shape().dim(0).dim_param(), "N");
  ASSERT_EQ(graph.output_size(), 1);
  EXPECT_EQ(graph.output(0).name(), "f");
  ASSERT_EQ(model.notices.size(), 1u);
}

TEST(ExportOnnx, BatchNormAndScaleBecomeOneNode) {
  const onnx::ExportedModel model =
      exported(std::string(images) + LAYER("BatchNorm", "") +
               "layer { name: \"s\" type: \"Scale\" bottom: \"y\" top: \"y\" }");
  ASSERT_EQ(model.model.graph().node_size(), 1);
  EXPECT_EQ(model.model.graph().node(0).op_type(), "BatchNormalization");
}

// onnx.checker does not look at that; onnxruntime refuses such a model.
TEST(ExportOnnx, NoTwoNodesHaveOneName) {
  for (const char* layer : {LAYER("ShuffleChannel", "shuffle_channel_param { group: 2 }"),
                            LAYER("LRN", "lrn_param { norm_region: WITHIN_CHANNEL local_size: 3 }")}) {
    const onnx::ExportedModel model = exported(std::string(images) + layer);
    std::set<std::string> names;
    for (const onnx::NodeProto& node : model.model.graph().node())
      EXPECT_TRUE(names.insert(node.name()).second) << node.name();
    EXPECT_GT(names.size(), 2u);
  }
}

TEST(ExportOnnx, SamplesThatAreMixedFixTheBatch) {
  const onnx::ExportedModel model =
      exported(std::string(images) + LAYER("Reshape", "reshape_param { shape { dim: -1 dim: 42 } }"));
  EXPECT_EQ(model.model.graph().input(0).type().tensor_type().shape().dim(0).dim_value(), 2);
}

TEST(ExportOnnx, WhatOnnxLacksIsRefused) {
  EXPECT_NE(
      error_of([] {
        exported(std::string(images) + LAYER("Pooling", "pooling_param { pool: STOCHASTIC kernel_size: 2 }"));
      }).find("layer 'y': stochastic pooling has no operator in ONNX"),
      std::string::npos);
  EXPECT_NE(error_of([] { exported(std::string(images) + LAYER("ArgMax", "")); }).find("a ArgMax layer"),
            std::string::npos);
  EXPECT_NE(
      error_of([] {
        exported(std::string(images) + LAYER("BatchNorm", "batch_norm_param { use_global_stats: false }"));
      }).find("use_global_stats is false"),
      std::string::npos);
}

}  // namespace
}  // namespace cortado::testing
