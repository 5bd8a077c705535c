#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/broadcast.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

caffe::LayerParameter linear_layer(double scale, double shift) {
  caffe::LayerParameter layer = layer_of_type("Power");
  if (scale != 1) layer.mutable_power_param()->set_scale(number_option(scale));
  if (shift != 0) layer.mutable_power_param()->set_shift(number_option(shift));
  return layer;
}

caffe::LayerParameter inverse_layer() {
  caffe::LayerParameter layer = layer_of_type("Power");
  layer.mutable_power_param()->set_power(-1);
  return layer;
}

caffe::LayerParameter eltwise_layer(caffe::EltwiseParameter::EltwiseOp operation,
                                    std::vector<float> factors = {}) {
  caffe::LayerParameter layer = layer_of_type("Eltwise");
  if (operation != caffe::EltwiseParameter::SUM) layer.mutable_eltwise_param()->set_operation(operation);
  for (const float factor : factors) layer.mutable_eltwise_param()->add_coeff(factor);
  return layer;
}

// Adds `sign` times a constant. A number becomes a Power layer; a vector of channels the bias of the product
// or convolution before it, else a Bias layer.
Value plus_constant(Node& node, const Value& value, const Constant& constant, float sign) {
  if (constant.size() == 1 && broadcasts_into(constant.shape, value.seen()))
    return node.layer(linear_layer(1, sign * constant.number(0)), value);
  BroadcastOperand operand = operand_of(constant, value.seen());
  for (float& number : operand.blob.values) number *= sign;
  if (operand.axis == 1 && operand.blob.shape.rank() == 1 && node.net().takes_bias(value)) {
    node.net().add_bias(value, std::move(operand.blob));
    return value;
  }
  caffe::LayerParameter layer = layer_of_type("Bias");
  layer.mutable_bias_param()->set_axis(operand.axis);
  layer.mutable_bias_param()->set_num_axes(operand.blob.shape.rank());
  return node.layer(std::move(layer), value, {std::move(operand.blob)});
}

Value times_constant(Node& node, const Value& value, const Constant& constant, bool inverse) {
  if (constant.size() == 1 && broadcasts_into(constant.shape, value.seen())) {
    const double factor = constant.number(0);
    if (inverse && factor == 0) throw UserError("it divides by 0");
    return node.layer(linear_layer(inverse ? 1 / factor : factor, 0), value);
  }
  BroadcastOperand operand = operand_of(constant, value.seen());
  if (inverse)
    for (float& number : operand.blob.values) number = 1 / number;
  caffe::LayerParameter layer = layer_of_type("Scale");
  layer.mutable_scale_param()->set_axis(operand.axis);
  layer.mutable_scale_param()->set_num_axes(operand.blob.shape.rank());
  return node.layer(std::move(layer), value, {std::move(operand.blob)});
}

// A sum or product of a tensor with one that has `axes` of it alone.
Value combined_along(Node& node, const Value& whole, const Value& part, AxisRange axes, bool product) {
  Value squeezed = part;
  squeezed.shape = Shape(whole.seen().extents().subspan(static_cast<size_t>(axes.begin),
                                                        static_cast<size_t>(axes.end - axes.begin)));
  caffe::LayerParameter layer = layer_of_type(product ? "Scale" : "Bias");
  if (product) {
    layer.mutable_scale_param()->set_axis(axes.begin);
  } else {
    layer.mutable_bias_param()->set_axis(axes.begin);
  }
  return node.layers(std::move(layer), {whole, squeezed})[0];
}

// A sum or product of two computed tensors, the smaller one repeated along the axes that it lacks.
Value combined(Node& node, const Value& a, const Value& b, bool product) {
  const Shape shape = broadcast_shape(a.seen(), b.seen());
  const bool first_is_whole = a.seen() == shape;
  const Value &whole = first_is_whole ? a : b, &part = first_is_whole ? b : a;
  if (part.seen() == shape)
    return node.layers(eltwise_layer(product ? caffe::EltwiseParameter::PROD : caffe::EltwiseParameter::SUM),
                       {a, b})[0];
  if (whole.seen() == shape)
    if (const auto axes = axes_of_part(part.seen(), shape))
      return combined_along(node, whole, part, *axes, product);
  const Value wide_a = tiled(node, a, shape, "/first"), wide_b = tiled(node, b, shape, "/second");
  return combined(node, wide_a, wide_b, product);
}

void read_add(Node& node) {
  node.check_inputs(2, 2);
  for (const int i : {0, 1})
    if (node.is_constant(1 - i))
      return node.give(plus_constant(node, node.activation(i), node.constant(1 - i), 1));
  Value sum = combined(node, node.activation(0), node.activation(1), false);
  sum.not_negative = node.activation(0).not_negative && node.activation(1).not_negative;
  node.give(std::move(sum));
}

void read_mul(Node& node) {
  node.check_inputs(2, 2);
  for (const int i : {0, 1})
    if (node.is_constant(1 - i))
      return node.give(times_constant(node, node.activation(i), node.constant(1 - i), false));
  for (const int i : {0, 1}) {
    Value swish = node.activation(i);
    swish.not_negative = false;
    if (node.net().make_swish(swish, node.activation(1 - i))) return node.give(std::move(swish));
  }
  Value product = combined(node, node.activation(0), node.activation(1), true);
  product.not_negative = node.activation(0).not_negative && node.activation(1).not_negative;
  node.give(std::move(product));
}

void read_sub(Node& node) {
  node.check_inputs(2, 2);
  if (node.is_constant(1)) return node.give(plus_constant(node, node.activation(0), node.constant(1), -1));
  const Value& second = node.activation(1);
  if (!node.is_constant(0) && node.activation(0).seen() == second.seen())
    return node.give(
        node.layers(eltwise_layer(caffe::EltwiseParameter::SUM, {1, -1}), {node.activation(0), second})[0]);
  Value negative = node.layer(linear_layer(-1, 0), second, {}, "/negative");
  if (node.is_constant(0)) return node.give(plus_constant(node, negative, node.constant(0), 1));
  node.give(combined(node, node.activation(0), negative, false));
}

void read_div(Node& node) {
  node.check_inputs(2, 2);
  if (node.is_constant(1)) return node.give(times_constant(node, node.activation(0), node.constant(1), true));
  const Value inverse = node.layer(inverse_layer(), node.activation(1), {}, "/inverse");
  if (node.is_constant(0)) return node.give(times_constant(node, inverse, node.constant(0), false));
  node.give(combined(node, node.activation(0), inverse, true));
}

void read_sum(Node& node) {
  const std::vector<Value> values = node.activations();
  if (values.size() == 1) return node.give(values[0]);
  if (std::ranges::all_of(values, [&](const Value& value) { return value.seen() == values[0].seen(); }))
    return node.give(node.layers(eltwise_layer(caffe::EltwiseParameter::SUM), values)[0]);
  Value sum = values.at(0);
  for (size_t i = 1; i < values.size(); ++i) sum = combined(node, sum, values[i], false);
  node.give(std::move(sum));
}

void read_max(Node& node) {
  const std::vector<Value> values = node.activations();
  if (values.size() == 1) return node.give(values[0]);
  node.give(node.layers(eltwise_layer(caffe::EltwiseParameter::MAX), values)[0]);
}

void read_mean(Node& node) {
  const std::vector<Value> values = node.activations();
  if (values.size() == 1) return node.give(values[0]);
  const std::vector<float> factors(values.size(), 1 / static_cast<float>(values.size()));
  node.give(node.layers(eltwise_layer(caffe::EltwiseParameter::SUM, factors), values)[0]);
}

}  // namespace

std::span<const Operator> arithmetic_operators() {
  static constexpr Operator operators[] = {
      {"Add", read_add},
      {"Sub", read_sub},
      {"Mul", read_mul},
      {"Div", read_div},
      {"Sum", read_sum},
      {"Max", read_max},
      {"Mean", read_mean},
      {"Min", nullptr, "Caffe has no such layer; use Max of the negatives, or Clip"},
      {"Mod", nullptr, "Caffe has no such layer"},
  };
  return operators;
}

}  // namespace cortado::onnx
