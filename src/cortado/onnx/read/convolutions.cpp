#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/node_window.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

// Layers have one pad for both sides of an axis. A kernel with zeros before or after it reads as one with the
// larger pad, shifted: `front` and `back` taps of zeros.
struct Widening {
  std::vector<int64_t> front, back, kernel, pad;
  bool any = false;
};

Widening widened(const NodeWindow& window, const std::vector<AxisPad>& pads) {
  Widening wide{.front = {}, .back = {}, .kernel = window.kernel, .pad = {}};
  for (size_t i = 0; i < window.axes(); ++i) {
    const int64_t more = pads[i].end - pads[i].begin;
    if (more % window.dilation[i] != 0)
      throw UserError(
          fmt::format("pads {} and {} of an axis with dilation {} have no equal; export with the same pad on "
                      "both sides",
                      pads[i].begin, pads[i].end, window.dilation[i]));
    const int64_t taps = std::abs(more) / window.dilation[i];
    wide.front.push_back(more > 0 ? taps : 0);
    wide.back.push_back(more > 0 ? 0 : taps);
    wide.kernel[i] += taps;
    wide.pad.push_back(std::max(pads[i].begin, pads[i].end));
    wide.any = wide.any || taps > 0;
    window_option("the kernel with the pads of one side", wide.kernel[i], 1);
  }
  return wide;
}

Blob widened_weight(const Constant& weight, const Widening& wide) {
  Shape shape = weight.shape;
  for (size_t i = 0; i < wide.kernel.size(); ++i) shape.set(static_cast<int>(i) + 2, wide.kernel[i]);
  constexpr int64_t most_growth = 64;  // of its elements: far more than pads on one side need
  if (shape.size() / most_growth > weight.size())
    throw UserError(
        fmt::format("a weight of shape {} is too large; use the same pads on both sides", shape.text()));
  Blob blob{shape, std::vector<float>(static_cast<size_t>(shape.size()))};
  const Strides to = row_major_strides(shape), from = row_major_strides(weight.shape);
  for (int64_t index = 0; index < weight.size(); ++index) {
    int64_t target = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const int64_t position = index / from[axis] % weight.shape[axis];
      const int64_t shift = axis < 2 ? 0 : wide.front[static_cast<size_t>(axis) - 2];
      target += (position + shift) * to[axis];
    }
    blob.values[static_cast<size_t>(target)] = weight.floats[static_cast<size_t>(index)];
  }
  return blob;
}

std::vector<Blob> window_weights(Node& node, const Widening& wide, int64_t outputs) {
  const Constant& weight = node.constant(1);
  std::vector<Blob> blobs{blob_of(weight, weight.shape)};
  if (wide.any) {
    blobs[0] = widened_weight(weight, wide);
    node.notice(
        fmt::format("'{}': unequal pads became zeros around its kernel, now of shape {}, which a "
                    "training may change",
                    node.name(), blobs[0].shape.text()));
  }
  if (node.has(2)) {
    const Constant& bias = node.constant(2);
    if (bias.size() != outputs)
      throw UserError(fmt::format("its bias has {} values for {} channels", bias.size(), outputs));
    blobs.push_back(blob_of(bias, {outputs}));
  }
  return blobs;
}

const Constant& window_weight(const Node& node) {
  const Constant& weight = node.constant(1);
  if (weight.shape.rank() < 3 || weight.shape.rank() > 5 || weight.whole || weight.size() == 0)
    throw UserError(
        fmt::format("its weight is of shape {}; it must be of floats, with one to three spatial axes",
                    weight.shape.text()));
  return weight;
}

void set_convolution(caffe::LayerParameter& layer, const NodeWindow& window, const Widening& wide,
                     int64_t outputs, int64_t group, bool bias) {
  caffe::ConvolutionParameter& options = *layer.mutable_convolution_param();
  options.set_num_output(static_cast<uint32_t>(outputs));
  if (!bias) options.set_bias_term(false);
  if (group != 1) options.set_group(static_cast<uint32_t>(group));
  set_option(*options.mutable_kernel_size(), "kernel_shape", wide.kernel, -1);
  set_option(*options.mutable_pad(), "pads", wide.pad, 0);
  set_option(*options.mutable_stride(), "strides", window.stride, 1);
  set_option(*options.mutable_dilation(), "dilations", window.dilation, 1);
  options.mutable_weight_filler()->set_type("msra");
}

std::vector<int64_t> spatial_extents(const Shape& shape) {
  return {shape.extents().begin() + 2, shape.extents().end()};
}

void check_zero_padding(const Value& input) {
  if (!input.pads.empty() && input.pad_value != 0)
    throw UserError(
        fmt::format("the Pad before it pads with {:g}; a convolution pads with 0", input.pad_value));
}

int64_t group_of(const Node& node, int64_t channels) {
  const int64_t group = node.attributes.integer("group", 1);
  if (group < 1 || channels % group != 0)
    throw UserError(fmt::format("group is {} for {} channels; it must divide them", group, channels));
  return group;
}

void read_conv(Node& node) {
  node.check_inputs(2, 3);
  const Value& input = node.activation(0);
  const Constant& weight = window_weight(node);
  check_zero_padding(input);
  const NodeWindow window = window_of(node, input, spatial_extents(weight.shape));
  std::vector<AxisPad> pads;
  for (size_t i = 0; i < window.axes(); ++i) pads.push_back({window.begin(i), window.end(i)});
  const Widening wide = widened(window, pads);
  const int64_t outputs = weight.shape[0];
  caffe::LayerParameter layer = layer_of_type("Convolution");
  set_convolution(layer, window, wide, outputs, group_of(node, outputs), node.has(2));
  node.give(node.layer(std::move(layer), unpadded(input), window_weights(node, wide, outputs)));
}

// Pads that a transposed convolution takes off its output, after output_padding or output_shape.
std::vector<AxisPad> taken_off(const Node& node, const NodeWindow& window) {
  const std::vector<int64_t> more =
      node.attributes.integers("output_padding").value_or(std::vector<int64_t>(window.axes(), 0));
  const std::optional<std::vector<int64_t>> shape = node.attributes.integers("output_shape");
  if (more.size() != window.axes() || (shape && shape->size() != window.axes()))
    throw UserError("output_padding and output_shape must have one value for each spatial axis");
  const std::string rule = node.attributes.text("auto_pad", "NOTSET");
  if (!shape && rule != "NOTSET" && rule != "VALID")
    throw UserError(fmt::format("auto_pad {} without output_shape; give pads", rule));
  std::vector<AxisPad> pads;
  for (size_t i = 0; i < window.axes(); ++i) {
    window_option("output_padding", more[i], 0);
    AxisPad pad{window.own[i].begin, window.own[i].end - more[i]};
    if (shape) {
      const int64_t full = window.stride[i] * (window.image[i] - 1) + window.extent(i) + more[i];
      if ((*shape)[i] < 1) throw UserError(fmt::format("output_shape has {}; give 1 or more", (*shape)[i]));
      const int64_t off = full - (*shape)[i];
      pad = rule == "SAME_UPPER" ? AxisPad{off / 2, off - off / 2} : AxisPad{off - off / 2, off / 2};
      pad.end -= more[i];
    }
    if (pad.begin < 0 || pad.begin > 1 << 16 || std::abs(pad.end) > 1 << 16)
      throw UserError("its pads or output_shape ask for more than there is; the file is broken");
    pads.push_back(pad);
  }
  return pads;
}

void read_conv_transpose(Node& node) {
  node.check_inputs(2, 3);
  const Value& input = node.activation(0);
  const Constant& weight = window_weight(node);
  if (!input.pads.empty()) throw UserError("a Pad before it has no equal; pad after it, or export without");
  const NodeWindow window = window_of(node, input, spatial_extents(weight.shape));
  const Widening turned = widened(window, taken_off(node, window));
  const int64_t group = group_of(node, weight.shape[0]);
  const int64_t outputs = weight.shape[1] * group;
  if (outputs > 1 << 24) throw UserError(fmt::format("has {} output channels, more than is read", outputs));
  caffe::LayerParameter layer = layer_of_type("Deconvolution");
  set_convolution(layer, window, turned, outputs, group, node.has(2));
  node.give(node.layer(std::move(layer), input, window_weights(node, turned, outputs)));
}

}  // namespace

std::span<const Operator> convolution_operators() {
  static constexpr Operator operators[] = {
      {"Conv", read_conv},
      {"ConvTranspose", read_conv_transpose},
      {"DeformConv", nullptr, "Caffe has no such layer; use Conv"},
  };
  return operators;
}

}  // namespace cortado::onnx
