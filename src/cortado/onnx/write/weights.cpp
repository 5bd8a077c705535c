#include <algorithm>
#include <cmath>
#include <numeric>

#include "cortado/base/error.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/embed.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/scale.h"
#include "cortado/onnx/write/layers.h"

namespace cortado::onnx {
namespace {

void write_inner_product(WrittenLayer& layer) {
  const InnerProductOptions& options = layer.as<InnerProduct>().options();
  const Shape& input = layer.input_shape(0);
  const int axis = input.canonical_axis(options.axis);
  if (axis == 1) {
    const std::string rows = input.rank() == 2
                                 ? layer.input(0)
                                 : layer.step("Flatten", {layer.input(0)}, {attribute("axis", int64_t{1})});
    std::vector<std::string> inputs{rows, layer.parameter(0)};
    if (options.bias_term) inputs.push_back(layer.parameter(1));
    return layer.last("Gemm", inputs, {attribute("transB", int64_t{!options.transpose})});
  }
  Shape joined;
  for (int a = 0; a < axis; ++a) joined.append(input[a]);
  joined.append(input.count(axis));
  const std::string rows =
      layer.step("Reshape", {layer.input(0), layer.integers(reshape_target(input, joined))});
  std::string weight = layer.parameter(0);
  if (!options.transpose)
    weight = layer.step("Transpose", {weight}, {attribute("perm", std::vector<int64_t>{1, 0})});
  if (!options.bias_term) return layer.last("MatMul", {rows, weight});
  layer.last("Add", {layer.step("MatMul", {rows, weight}), layer.parameter(1)});
}

// A Scale or Bias's operand, with the axes after it as 1.
Shape with_trailing_ones(const Shape& operand, int first, int rank) {
  Shape shape = operand;
  for (int axis = first + operand.rank(); axis < rank; ++axis) shape.append(1);
  return shape;
}

std::string second_operand(WrittenLayer& layer, const Broadcast& broadcast) {
  const std::vector<Shape> inputs{layer.input_shape(0), layer.input_shape(1)};
  const int first = broadcast.first_axis(inputs);
  std::vector<int64_t> added;
  for (int axis = first + inputs[1].rank(); axis < inputs[0].rank(); ++axis) added.push_back(axis - first);
  if (added.empty()) return layer.input(1);
  return layer.step("Unsqueeze", {layer.input(1), layer.integers(added)});
}

Shape operand_shape(const WrittenLayer& layer, const Broadcast& broadcast, int parameter) {
  std::vector<Shape> inputs;
  for (size_t i = 0; i < layer.inputs().size(); ++i) inputs.push_back(layer.input_shape(static_cast<int>(i)));
  return with_trailing_ones(layer.parameter_shape(parameter), broadcast.first_axis(inputs), inputs[0].rank());
}

// The running sums of a BatchNorm layer, divided by their number.
std::vector<float> statistics(const WrittenLayer& norm, int parameter) {
  const float factor = norm.values(2)[0];
  std::vector<float> values = norm.values(parameter);
  for (float& value : values) value = factor == 0 ? 0 : value / factor;
  return values;
}

void write_norm(WrittenLayer& layer, const WrittenLayer& norm, const std::string& input,
                const std::string& scale, const std::string& bias) {
  const BatchNormOptions& options = norm.as<BatchNorm>().options();
  const Shape channels = norm.parameter_shape(0);
  GraphWriter& graph = layer.graph();
  const std::string mean = graph.floats(norm.name() + ".running_mean", channels, statistics(norm, 0));
  const std::string variance = graph.floats(norm.name() + ".running_var", channels, statistics(norm, 1));
  layer.last("BatchNormalization", {input, scale, bias, mean, variance},
             {attribute("epsilon", options.eps), attribute("momentum", options.moving_average_fraction)});
}

void write_batch_norm(WrittenLayer& layer) {
  if (!layer.as<BatchNorm>().options().global_statistics(layer.node().phase))
    throw UserError(
        "use_global_stats is false: it normalizes by the batch, which ONNX does only in training");
  if (is_fused_norm(layer.network(), layer.index())) return;
  const Shape channels = layer.parameter_shape(0);
  const auto size = static_cast<size_t>(channels.size());
  const std::string scale =
      layer.graph().floats(layer.name() + ".weight", channels, std::vector<float>(size, 1));
  const std::string bias = layer.graph().floats(layer.name() + ".bias", channels, std::vector<float>(size));
  write_norm(layer, layer, layer.input(0), scale, bias);
}

void write_scale(WrittenLayer& layer) {
  const ScaleOptions& options = layer.as<Scale>().options();
  const NodeIndex producer = layer.network().tensors()[layer.node().inputs[0]].producer;
  if (is_fused_norm(layer.network(), producer)) {
    const WrittenLayer norm = layer.other(producer);
    const Shape channels = layer.parameter_shape(0);
    const std::string bias =
        options.bias_term ? layer.parameter(1)
                          : layer.graph().floats(layer.name() + ".bias", channels,
                                                 std::vector<float>(static_cast<size_t>(channels.size())));
    return write_norm(layer, norm, layer.input(0), layer.parameter(0), bias);
  }
  const bool two = layer.inputs().size() == 2;
  const std::string factor = two ? second_operand(layer, options.broadcast)
                                 : layer.parameter(0, operand_shape(layer, options.broadcast, 0));
  if (!options.bias_term) return layer.last("Mul", {layer.input(0), factor});
  const int bias = two ? 0 : 1;
  layer.last("Add", {layer.step("Mul", {layer.input(0), factor}),
                     layer.parameter(bias, operand_shape(layer, options.broadcast, bias))});
}

void write_bias(WrittenLayer& layer) {
  const Broadcast& broadcast = layer.as<Bias>().options().broadcast;
  layer.last("Add", {layer.input(0), layer.inputs().size() == 2
                                         ? second_operand(layer, broadcast)
                                         : layer.parameter(0, operand_shape(layer, broadcast, 0))});
}

void write_prelu(WrittenLayer& layer) {
  Shape slope = layer.parameter_shape(0);
  if (slope.rank() == 1) slope = with_trailing_ones(slope, 1, layer.input_shape(0).rank());
  layer.last("PRelu", {layer.input(0), layer.parameter(0, slope)});
}

void write_embed(WrittenLayer& layer) {
  const std::string indices =
      layer.step("Cast", {layer.input(0)}, {attribute("to", int64_t{TensorProto::INT64})});
  const std::vector<std::string> inputs{layer.parameter(0), indices};
  if (!layer.as<Embed>().options().bias_term) return layer.last("Gather", inputs);
  layer.last("Add", {layer.step("Gather", inputs), layer.parameter(1)});
}

// x * (1 + alpha * average of x^2)^-beta
void write_lrn_within(WrittenLayer& layer, const LrnOptions& options) {
  const size_t axes = static_cast<size_t>(layer.input_shape(0).rank()) - 2;
  const std::string square = layer.step("Mul", {layer.input(0), layer.input(0)});
  const std::string average = layer.step(
      "AveragePool", {square},
      {attribute("kernel_shape", std::vector<int64_t>(axes, options.local_size)),
       attribute("pads", std::vector<int64_t>(2 * axes, options.local_size / 2)),
       attribute("strides", std::vector<int64_t>(axes, 1)), attribute("count_include_pad", int64_t{1})});
  const std::string scaled = layer.step("Mul", {average, layer.number(options.alpha)});
  const std::string sum = layer.step("Add", {scaled, layer.number(1)});
  layer.last("Mul", {layer.input(0), layer.step("Pow", {sum, layer.number(-options.beta)})});
}

void write_lrn(WrittenLayer& layer) {
  const LrnOptions& options = layer.as<Lrn>().options();
  if (options.region == LrnOptions::Region::within_channel) return write_lrn_within(layer, options);
  layer.last("LRN", {layer.input(0)},
             {attribute("size", options.local_size), attribute("alpha", options.alpha),
              attribute("beta", options.beta), attribute("bias", options.k)});
}

void write_mvn(WrittenLayer& layer) {
  const MvnOptions& options = layer.as<Mvn>().options();
  std::vector<int64_t> axes(static_cast<size_t>(layer.input_shape(0).rank()) -
                            (options.across_channels ? 1 : 2));
  std::iota(axes.begin(), axes.end(), options.across_channels ? 1 : 2);
  const std::vector<AttributeProto> over{attribute("axes", axes), attribute("keepdims", int64_t{1})};
  const std::vector<std::string> centre{layer.input(0), layer.step("ReduceMean", {layer.input(0)}, over)};
  if (!options.normalize_variance) return layer.last("Sub", centre);
  const std::string centred = layer.step("Sub", centre);
  const std::string variance = layer.step("ReduceMean", {layer.step("Mul", {centred, centred})}, over);
  const std::string deviation =
      layer.step("Add", {layer.step("Sqrt", {variance}), layer.number(options.eps)});
  layer.last("Div", {centred, deviation});
}

// ONNX has no eps: zeros stay zeros in its runtimes.
void write_normalize(WrittenLayer& layer) {
  const NormalizeOptions& options = layer.as<Normalize>().options();
  const Shape& input = layer.input_shape(0);
  constexpr double most = 1e-8;
  if (options.eps > most)
    throw UserError("its eps is larger than 1e-8, and LpNormalization has none; lower it");
  const std::vector<AttributeProto> along_channels{attribute("axis", int64_t{1}), attribute("p", int64_t{2})};
  std::string normal;
  if (options.across_spatial) {
    const std::string row = layer.step("Flatten", {layer.input(0)}, {attribute("axis", int64_t{1})});
    normal = layer.step("LpNormalization", {row}, along_channels);
    normal = layer.step("Reshape", {normal, layer.integers(reshape_target(input, input))});
  } else {
    normal = layer.step("LpNormalization", {layer.input(0)}, along_channels);
  }
  const Shape factor =
      options.channel_shared ? Shape{} : with_trailing_ones(Shape{input[1]}, 1, input.rank());
  layer.last("Mul", {normal, layer.parameter(0, factor)});
}

}  // namespace

bool is_fused_norm(const Network& network, NodeIndex index) {
  const Network::Node& norm = network.nodes()[index];
  if (norm.layer->type() != "BatchNorm") return false;
  const std::vector<NodeIndex>& readers = network.tensors()[norm.outputs[0]].consumers;
  if (readers.size() != 1) return false;
  const auto* scale = dynamic_cast<const Scale*>(network.nodes()[readers[0]].layer.get());
  return scale && network.nodes()[readers[0]].inputs.size() == 1 && scale->options().broadcast.axis == 1 &&
         scale->options().broadcast.num_axes == 1;
}

std::span<const LayerWriter> weight_writers() {
  static constexpr LayerWriter writers[] = {
      {"InnerProduct", write_inner_product},
      {"Embed", write_embed},
      {"BatchNorm", write_batch_norm},
      {"Scale", write_scale},
      {"Bias", write_bias},
      {"PReLU", write_prelu},
      {"LRN", write_lrn},
      {"MVN", write_mvn},
      {"Normalize", write_normalize},
  };
  return writers;
}

}  // namespace cortado::onnx
