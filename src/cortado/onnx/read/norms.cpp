#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

Blob channel_blob(const Node& node, int i, int64_t channels) {
  const Constant& constant = node.constant(i);
  if (constant.size() != channels)
    throw UserError(fmt::format("input {} has {} values for {} channels", i, constant.size(), channels));
  return blob_of(constant, {channels});
}

// Caffe has the statistics and the learned scale in two layers.
void read_batch_norm(Node& node) {
  node.check_inputs(5, 5);
  const Value& input = node.activation(0);
  if (input.shape.rank() < 2)
    throw UserError(fmt::format("its input is of shape {}, without channels", input.shape.text()));
  if (node.attributes.integer("training_mode", 0) != 0)
    throw UserError("training_mode is 1; export the model for inference (model.eval())");
  const int64_t channels = input.shape[1];
  caffe::LayerParameter norm = layer_of_type("BatchNorm");
  norm.mutable_batch_norm_param()->set_eps(number_option(node.attributes.number("epsilon", 1e-5)));
  norm.mutable_batch_norm_param()->set_moving_average_fraction(
      number_option(node.attributes.number("momentum", 0.9)));
  const Value normal = node.layer(
      std::move(norm), input, {channel_blob(node, 3, channels), channel_blob(node, 4, channels), {{1}, {1}}});
  caffe::LayerParameter scale = layer_of_type("Scale");
  scale.mutable_scale_param()->set_bias_term(true);
  node.give(node.layer(std::move(scale), normal,
                       {channel_blob(node, 1, channels), channel_blob(node, 2, channels)}, "/scale"));
}

void read_lrn(Node& node) {
  node.check_inputs(1, 1);
  const int64_t size = node.attributes.integer("size", 0);
  if (size < 1 || size % 2 == 0)
    throw UserError(fmt::format("size is {}; an LRN layer needs an odd number of channels", size));
  caffe::LayerParameter layer = layer_of_type("LRN");
  caffe::LRNParameter& options = *layer.mutable_lrn_param();
  options.set_local_size(window_option("size", size, 1));
  options.set_alpha(number_option(node.attributes.number("alpha", 1e-4)));
  options.set_beta(number_option(node.attributes.number("beta", 0.75)));
  options.set_k(number_option(node.attributes.number("bias", 1)));
  node.give(node.layer(std::move(layer), node.activation(0)));
}

void read_softmax(Node& node) {
  node.check_inputs(1, 1);
  const Value& input = node.activation(0);
  const int axis = axis_of(node.attributes.integer("axis", -1), input.shape.rank());
  caffe::LayerParameter layer = layer_of_type("Softmax");
  if (axis != 1) layer.mutable_softmax_param()->set_axis(axis);
  Value output = node.layer(std::move(layer), input);
  output.not_negative = true;
  if (node.type() == "LogSoftmax") output = node.layer(layer_of_type("Log"), output, {}, "/log");
  node.give(std::move(output));
}

// A layer Normalize with a factor of 1 that is not trained. Its eps, which ONNX has not, keeps zeros zero.
void read_lp_norm(Node& node) {
  node.check_inputs(1, 1);
  const Value& input = node.activation(0);
  if (const int64_t p = node.attributes.integer("p", 2); p != 2)
    throw UserError(fmt::format("p is {}; only the norm of p 2 is read", p));
  const int axis = axis_of(node.attributes.integer("axis", -1), input.shape.rank());
  if (axis != 1)
    throw UserError(fmt::format("it normalizes along axis {}; only 1, the channels, is read", axis));
  caffe::LayerParameter layer = layer_of_type("Normalize");
  layer.mutable_norm_param()->set_across_spatial(false);
  layer.mutable_norm_param()->set_eps(1e-30f);
  freeze(layer, 1);
  node.give(node.layer(std::move(layer), input, {{{}, {1}}}));
}

}  // namespace

std::span<const Operator> norm_operators() {
  static constexpr Operator operators[] = {
      {"BatchNormalization", read_batch_norm},
      {"LRN", read_lrn},
      {"Softmax", read_softmax},
      {"LogSoftmax", read_softmax},
      {"InstanceNormalization", nullptr,
       "Caffe's MVN divides by sqrt(variance) + epsilon; use BatchNormalization"},
      {"LayerNormalization", nullptr, "Caffe has no such layer; use BatchNormalization"},
      {"GroupNormalization", nullptr, "Caffe has no such layer; use BatchNormalization"},
      {"MeanVarianceNormalization", nullptr, "use BatchNormalization"},
      {"LpNormalization", read_lp_norm},
  };
  return operators;
}

}  // namespace cortado::onnx
