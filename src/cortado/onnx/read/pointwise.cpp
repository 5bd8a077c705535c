#include <algorithm>
#include <cfloat>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

caffe::LayerParameter power_layer(double power, double scale, double shift) {
  caffe::LayerParameter layer = layer_of_type("Power");
  if (power != 1) layer.mutable_power_param()->set_power(number_option(power));
  if (scale != 1) layer.mutable_power_param()->set_scale(number_option(scale));
  if (shift != 0) layer.mutable_power_param()->set_shift(number_option(shift));
  return layer;
}

caffe::LayerParameter clip_layer(double min, double max) {
  caffe::LayerParameter layer = layer_of_type("Clip");
  layer.mutable_clip_param()->set_min(number_option(min));
  layer.mutable_clip_param()->set_max(number_option(max));
  return layer;
}

void give_pointwise(Node& node, caffe::LayerParameter layer, bool not_negative = false) {
  node.check_inputs(1, 1);
  Value output = node.layer(std::move(layer), node.activation(0));
  output.not_negative = not_negative;
  node.give(std::move(output));
}

void read_relu(Node& node) { give_pointwise(node, layer_of_type("ReLU"), true); }

void read_leaky_relu(Node& node) {
  caffe::LayerParameter layer = layer_of_type("ReLU");
  layer.mutable_relu_param()->set_negative_slope(number_option(node.attributes.number("alpha", 0.01)));
  give_pointwise(node, std::move(layer));
}

void read_elu(Node& node) {
  caffe::LayerParameter layer = layer_of_type("ELU");
  layer.mutable_elu_param()->set_alpha(number_option(node.attributes.number("alpha", 1)));
  give_pointwise(node, std::move(layer));
}

void read_sigmoid(Node& node) { give_pointwise(node, layer_of_type("Sigmoid"), true); }
void read_tanh(Node& node) { give_pointwise(node, layer_of_type("TanH")); }
void read_softplus(Node& node) { give_pointwise(node, layer_of_type("BNLL"), true); }
void read_abs(Node& node) { give_pointwise(node, layer_of_type("AbsVal"), true); }
void read_exp(Node& node) { give_pointwise(node, layer_of_type("Exp"), true); }
void read_log(Node& node) { give_pointwise(node, layer_of_type("Log")); }
void read_neg(Node& node) { give_pointwise(node, power_layer(1, -1, 0)); }
void read_sqrt(Node& node) { give_pointwise(node, power_layer(0.5, 1, 0), true); }
void read_reciprocal(Node& node) { give_pointwise(node, power_layer(-1, 1, 0)); }

void read_pow(Node& node) {
  node.check_inputs(2, 2);
  node.give(node.layer(power_layer(node.scalar(1), 1, 0), node.activation(0)));
}

// A slope for all channels, or one for each.
void read_prelu(Node& node) {
  node.check_inputs(2, 2);
  const Value& input = node.activation(0);
  const Constant& slope = node.constant(1);
  const int rank = input.shape.rank();
  caffe::LayerParameter layer = layer_of_type("PReLU");
  if (slope.size() == 1) {
    layer.mutable_prelu_param()->set_channel_shared(true);
    return node.give(node.layer(std::move(layer), input, {blob_of(slope, {})}));
  }
  const int axis = rank - slope.shape.rank();  // of the slope's first axis in the input
  const bool per_channel = rank >= 2 && axis >= 0 && axis <= 1 && slope.size() == input.shape[1] &&
                           slope.shape[1 - axis] == input.shape[1];
  if (!per_channel)
    throw UserError(
        fmt::format("its slope is of shape {} for an input of {}; a PReLU layer has one slope, or one per "
                    "channel",
                    slope.shape.text(), input.shape.text()));
  node.give(node.layer(std::move(layer), input, {blob_of(slope, {slope.size()})}));
}

void read_clip(Node& node) {
  node.check_inputs(1, 3);
  const double min = node.has(1) ? node.scalar(1) : -FLT_MAX, max = node.has(2) ? node.scalar(2) : FLT_MAX;
  const bool is_relu = min == 0 && max >= FLT_MAX;
  Value output =
      node.layer(is_relu ? layer_of_type("ReLU")
                         : clip_layer(std::max(min, -double{FLT_MAX}), std::min(max, double{FLT_MAX})),
                 node.activation(0));
  output.not_negative = min >= 0;
  node.give(std::move(output));
}

// max(0, min(1, alpha * x + beta))
Value hard_sigmoid(Node& node, double alpha, double beta) {
  const Value line = node.layer(power_layer(1, alpha, beta), node.activation(0), {}, "/line");
  return node.layer(clip_layer(0, 1), line, {}, "/clip");
}

void read_hard_sigmoid(Node& node) {
  node.check_inputs(1, 1);
  Value output =
      hard_sigmoid(node, node.attributes.number("alpha", 0.2), node.attributes.number("beta", 0.5));
  output.not_negative = true;
  node.give(std::move(output));
}

void read_hard_swish(Node& node) {
  node.check_inputs(1, 1);
  const Value gate = hard_sigmoid(node, 1.0 / 6, 0.5);
  caffe::LayerParameter product = layer_of_type("Eltwise");
  product.mutable_eltwise_param()->set_operation(caffe::EltwiseParameter::PROD);
  node.give(node.layers(std::move(product), {node.activation(0), gate})[0]);
}

// What a Dropout drops while training; nothing else.
void read_dropout(Node& node) {
  node.check_inputs(1, 3);
  node.attributes.pass_over("seed");
  if (node.has(2) && node.scalar(2) != 0)
    node.notice(
        fmt::format("'{}': training_mode is given; a Dropout layer drops while training alone", node.name()));
  caffe::LayerParameter layer = layer_of_type("Dropout");
  const double ratio = node.has(1) ? node.scalar(1) : 0.5;
  if (!(ratio >= 0 && ratio <= 1)) throw UserError(fmt::format("ratio is {:g}; it can be 0 to 1", ratio));
  layer.mutable_dropout_param()->set_dropout_ratio(number_option(ratio));
  Value output = node.layer(std::move(layer), node.activation(0));
  output.not_negative = node.activation(0).not_negative;
  node.give(std::move(output));
}

}  // namespace

std::span<const Operator> pointwise_operators() {
  static constexpr Operator operators[] = {
      {"Relu", read_relu},
      {"LeakyRelu", read_leaky_relu},
      {"PRelu", read_prelu},
      {"Elu", read_elu},
      {"Sigmoid", read_sigmoid},
      {"Tanh", read_tanh},
      {"Softplus", read_softplus},
      {"Abs", read_abs},
      {"Exp", read_exp},
      {"Log", read_log},
      {"Neg", read_neg},
      {"Sqrt", read_sqrt},
      {"Reciprocal", read_reciprocal},
      {"Pow", read_pow},
      {"Clip", read_clip},
      {"HardSigmoid", read_hard_sigmoid},
      {"HardSwish", read_hard_swish},
      {"Dropout", read_dropout},
      {"Selu", nullptr, "use Elu, which has one factor"},
      {"Celu", nullptr, "use Elu"},
      {"Erf", nullptr, "Caffe has no such layer (GELU needs it); use Sigmoid or HardSwish"},
      {"Gelu", nullptr, "Caffe has no such layer; use Relu or HardSwish"},
      {"Mish", nullptr, "Caffe has no such layer; use HardSwish"},
      {"Softsign", nullptr, "Caffe has no such layer; use Tanh"},
      {"ThresholdedRelu", nullptr, "it has no gradient at its threshold; use Relu"},
  };
  return operators;
}

}  // namespace cortado::onnx
