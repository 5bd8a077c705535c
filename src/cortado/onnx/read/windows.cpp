#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/window.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

// The window of a node along each spatial axis. Pads: those of the node and of a Pad before it.
struct NodeWindow {
  std::vector<int64_t> image;  // without pads
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<AxisPad> before, own;  // of a Pad before the node; of the node itself

  size_t axes() const { return image.size(); }
  int64_t extent(size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
  int64_t begin(size_t i) const { return before[i].begin + own[i].begin; }
  int64_t end(size_t i) const { return before[i].end + own[i].end; }
};

std::vector<int64_t> per_axis_of(const Node& node, const std::string& name, size_t axes, int64_t least) {
  std::vector<int64_t> values = node.attributes.integers(name).value_or(std::vector<int64_t>(axes, 1));
  if (values.size() != axes)
    throw UserError(fmt::format("{} has {} values for {} spatial axes", name, values.size(), axes));
  for (int64_t value : values) window_option(name, value, least);
  return values;
}

// VALID, SAME_UPPER and SAME_LOWER ask for pads that depend on the image.
void set_pads(const Node& node, NodeWindow& window) {
  const std::string rule = node.attributes.text("auto_pad", "NOTSET");
  const std::vector<int64_t> pads =
      node.attributes.integers("pads").value_or(std::vector<int64_t>(2 * window.axes(), 0));
  window.own.assign(window.axes(), {});
  if (rule == "NOTSET") {
    if (pads.size() != 2 * window.axes())
      throw UserError(fmt::format("pads has {} values for {} spatial axes", pads.size(), window.axes()));
    for (size_t i = 0; i < window.axes(); ++i)
      window.own[i] = {window_option("pads", pads[i], 0), window_option("pads", pads[i + window.axes()], 0)};
    return;
  }
  if (rule == "VALID") return;
  if (rule != "SAME_UPPER" && rule != "SAME_LOWER")
    throw UserError(
        fmt::format("auto_pad is '{}'; it can be NOTSET, VALID, SAME_UPPER and SAME_LOWER", rule));
  for (size_t i = 0; i < window.axes(); ++i) {
    const int64_t image = window.image[i] + window.before[i].begin + window.before[i].end;
    const int64_t windows = (image + window.stride[i] - 1) / window.stride[i];
    const int64_t pad = std::max<int64_t>(0, (windows - 1) * window.stride[i] + window.extent(i) - image);
    window.own[i] = rule == "SAME_UPPER" ? AxisPad{pad / 2, pad - pad / 2} : AxisPad{pad - pad / 2, pad / 2};
  }
}

NodeWindow window_of(const Node& node, const Value& input, std::vector<int64_t> kernel) {
  const int rank = input.shape.rank();
  if (rank < 3 || rank > 5)
    throw UserError(fmt::format("its input is of shape {}; it must have N, C and one to three spatial axes",
                                input.shape.text()));
  NodeWindow window;
  for (int axis = 2; axis < rank; ++axis) window.image.push_back(input.shape[axis]);
  const size_t axes = window.axes();
  if (kernel.empty() && !node.attributes.has("kernel_shape")) throw UserError("kernel_shape is not given");
  window.kernel = node.attributes.has("kernel_shape") ? per_axis_of(node, "kernel_shape", axes, 1) : kernel;
  if (!kernel.empty() && window.kernel != kernel)
    throw UserError("kernel_shape is not that of the weight; the file is broken");
  if (window.kernel.size() != axes)
    throw UserError(
        fmt::format("its weight is for {} spatial axes, its input has {}", window.kernel.size(), axes));
  window.stride = per_axis_of(node, "strides", axes, 1);
  window.dilation = per_axis_of(node, "dilations", axes, 1);
  window.before = input.pads.empty() ? std::vector<AxisPad>(axes) : input.pads;
  set_pads(node, window);
  return window;
}

// The input without the Pad before the node, which takes it.
Value unpadded(Value input) {
  input.pads.clear();
  return input;
}

template <typename Field>
void set_option(Field& field, const std::string& what, const std::vector<int64_t>& values, int64_t fallback) {
  const bool equal = std::ranges::all_of(values, [&](int64_t value) { return value == values[0]; });
  if (equal && values[0] == fallback) return;
  for (int64_t value : equal ? std::vector<int64_t>{values[0]} : values)
    field.Add(window_option(what, value, 0));
}

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

// How many windows the node has along an axis, with PyTorch's rule (ONNX's since opset 19): none starts in
// the pad after the image.
int64_t windows_of_node(const NodeWindow& window, size_t i, bool ceil) {
  const int64_t image = window.image[i] + window.begin(i) + window.end(i);
  const int64_t room = image - window.extent(i);
  if (room < 0)
    throw UserError(fmt::format("a window of {} does not fit an axis of {}", window.extent(i), image));
  int64_t windows = (ceil ? room + window.stride[i] - 1 : room) / window.stride[i] + 1;
  if (ceil && (windows - 1) * window.stride[i] >= image - window.own[i].end) --windows;
  return windows;
}

// Whether a Pooling layer with this rounding has so many windows along an axis.
bool has_windows(const NodeWindow& window, size_t i, Rounding rounding, int64_t windows) {
  const WindowAxis axis{window.kernel[i], window.stride[i], window.begin(i), 1};
  const int64_t room = window.image[i] + 2 * axis.pad - axis.extent();
  const bool fits = rounding == Rounding::down ? room >= 0 : room > -axis.stride;
  return fits && window_count(window.image[i], axis, rounding) == windows;
}

// The rounding by which a Pooling layer has the node's number of windows on every axis.
Rounding rounding_of(const NodeWindow& window, const std::vector<int64_t>& windows) {
  bool padded = false;
  for (size_t i = 0; i < window.axes(); ++i) padded = padded || window.begin(i) > 0;
  for (const Rounding rounding : {Rounding::down, padded ? Rounding::up_inside : Rounding::up}) {
    bool fits = true;
    for (size_t i = 0; i < window.axes(); ++i) fits = fits && has_windows(window, i, rounding, windows[i]);
    if (fits) return rounding;
  }
  throw UserError(fmt::format(
      "pads {} and {} of an input of {} with kernel {} and stride {} give a number of windows that "
      "Pooling layers do not have; export with the same pad on both sides",
      window.begin(0), window.end(0), window.image[0], window.kernel[0], window.stride[0]));
}

caffe::LayerParameter pooling_layer(const NodeWindow& window, caffe::PoolingParameter::PoolMethod method,
                                    const std::vector<int64_t>& windows) {
  caffe::LayerParameter layer = layer_of_type("Pooling");
  caffe::PoolingParameter& options = *layer.mutable_pooling_param();
  options.set_pool(method);
  std::vector<int64_t> pad;
  for (size_t i = 0; i < window.axes(); ++i) pad.push_back(window.begin(i));
  google::protobuf::RepeatedField<uint32_t> kernels, strides, pads;
  set_option(kernels, "kernel_shape", window.kernel, -1);
  set_option(strides, "strides", window.stride, 1);
  set_option(pads, "pads", pad, 0);
  if (kernels.size() <= 1 && strides.size() <= 1 && pads.size() <= 1) {
    options.set_kernel_size(kernels[0]);
    if (!strides.empty()) options.set_stride(strides[0]);
    if (!pads.empty()) options.set_pad(pads[0]);
  } else {
    *options.mutable_kernel_nd() = kernels;
    *options.mutable_stride_nd() = strides;
    *options.mutable_pad_nd() = pads;
  }
  if (rounding_of(window, windows) == Rounding::down) options.set_round_mode(caffe::PoolingParameter::FLOOR);
  return layer;
}

NodeWindow pooling_window(const Node& node, std::vector<int64_t>& windows) {
  const NodeWindow window = window_of(node, node.activation(0), {});
  const bool ceil = node.attributes.integer("ceil_mode", 0) != 0;
  for (size_t i = 0; i < window.axes(); ++i) {
    if (window.dilation[i] != 1)
      throw UserError(fmt::format("dilations has {}; Pooling layers have none", window.dilation[i]));
    windows.push_back(windows_of_node(window, i, ceil));
  }
  return window;
}

void read_max_pool(Node& node) {
  node.check_inputs(1, 1);
  node.attributes.pass_over("storage_order");
  if (node.outputs() > 1 && node.reads_output(1))
    throw UserError("its indices are read; Pooling layers count them otherwise");
  const Value& input = node.activation(0);
  constexpr double least = -1e30;  // what stands for nothing
  if (!input.pads.empty() && input.pad_value > least && !(input.pad_value == 0 && input.not_negative))
    throw UserError(fmt::format("the Pad before it pads with {:g}, which may be a maximum; pad with -inf",
                                input.pad_value));
  std::vector<int64_t> windows;
  const NodeWindow window = pooling_window(node, windows);
  Value output = node.layer(pooling_layer(window, caffe::PoolingParameter::MAX, windows), unpadded(input));
  output.not_negative = input.not_negative;
  node.give(std::move(output));
}

// By how many positions the node and the layer divide a sum over a window.
struct Divisors {
  std::vector<int64_t> node, layer;  // per window of an axis
};

Divisors divisors_of(const NodeWindow& window, size_t i, int64_t windows, bool with_pads) {
  Divisors divisors;
  const AxisPad own = with_pads ? window.own[i] : AxisPad{};
  for (int64_t w = 0; w < windows; ++w) {
    const int64_t start = w * window.stride[i] - window.begin(i), end = start + window.kernel[i];
    const int64_t first = -window.before[i].begin - own.begin;
    const int64_t last = window.image[i] + window.before[i].end + own.end;
    divisors.node.push_back(std::min(end, last) - std::max(start, first));
    divisors.layer.push_back(std::min(end, window.image[i] + window.begin(i)) - start);
  }
  return divisors;
}

// What the layer's averages must be multiplied by; empty: by nothing.
std::vector<float> corrections(const std::vector<Divisors>& axes) {
  std::vector<float> factors{1};
  bool any = false;
  for (const Divisors& axis : axes) {
    std::vector<float> products;
    for (const float factor : factors) {
      for (size_t w = 0; w < axis.node.size(); ++w) {
        if (axis.node[w] < 1) throw UserError("a window covers padding alone, whose average has no value");
        any = any || axis.node[w] != axis.layer[w];
        products.push_back(factor * static_cast<float>(axis.layer[w]) / static_cast<float>(axis.node[w]));
      }
    }
    factors = std::move(products);
  }
  return any ? factors : std::vector<float>{};
}

void read_average_pool(Node& node) {
  node.check_inputs(1, 1);
  const Value& input = node.activation(0);
  if (!input.pads.empty() && input.pad_value != 0)
    throw UserError(
        fmt::format("the Pad before it pads with {:g}; a Pooling layer pads with 0", input.pad_value));
  std::vector<int64_t> windows;
  const NodeWindow window = pooling_window(node, windows);
  const bool with_pads = node.attributes.integer("count_include_pad", 0) != 0;
  Value output = node.layer(pooling_layer(window, caffe::PoolingParameter::AVE, windows), unpadded(input));
  check_extents(Shape(std::span(windows)), most_computed);
  std::vector<Divisors> divisors;
  for (size_t i = 0; i < window.axes(); ++i)
    divisors.push_back(divisors_of(window, i, windows[i], with_pads));
  std::vector<float> factors = corrections(divisors);
  if (!factors.empty()) {
    caffe::LayerParameter scale = layer_of_type("Scale");
    scale.mutable_scale_param()->set_axis(2);
    scale.mutable_scale_param()->set_num_axes(-1);
    freeze(scale, 1);
    output =
        node.layer(std::move(scale), output, {{Shape(std::span(windows)), std::move(factors)}}, "/divisor");
  }
  output.not_negative = input.not_negative;
  node.give(std::move(output));
}

void read_global_pool(Node& node) {
  node.check_inputs(1, 1);
  caffe::LayerParameter layer = layer_of_type("Pooling");
  layer.mutable_pooling_param()->set_pool(node.type() == "GlobalMaxPool" ? caffe::PoolingParameter::MAX
                                                                         : caffe::PoolingParameter::AVE);
  layer.mutable_pooling_param()->set_global_pooling(true);
  node.give(node.layer(std::move(layer), node.activation(0)));
}

// A Pad makes no layer: the convolution or pooling after it takes it.
void read_pad(Node& node) {
  node.check_inputs(2, 4);
  Value output = node.activation(0);
  const std::string mode = node.attributes.text("mode", "constant");
  if (mode != "constant") throw UserError(fmt::format("mode is '{}'; only constant padding is read", mode));
  const std::vector<int64_t> pads = node.integers(1);
  const int rank = output.shape.rank();
  std::vector<int64_t> axes;
  for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  if (node.has(3)) axes = node.integers(3);
  if (pads.size() != 2 * axes.size()) throw UserError("pads must have two values for each axis");
  const double value = node.has(2) ? node.scalar(2) : 0;
  if (std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; })) return node.give(std::move(output));
  if (!output.pads.empty() && output.pad_value != value)
    throw UserError("two Pads pad with different values");
  output.pads.resize(static_cast<size_t>(std::max(0, rank - 2)));
  output.pad_value = value;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = axis_of(axes[i], rank);
    const int64_t begin = window_option("pads", pads[i], 0),
                  end = window_option("pads", pads[i + axes.size()], 0);
    if (begin == 0 && end == 0) continue;
    if (axis < 2)
      throw UserError("it pads samples or channels, which no layer does; concatenate zeros instead");
    output.pads[static_cast<size_t>(axis) - 2].begin += begin;
    output.pads[static_cast<size_t>(axis) - 2].end += end;
  }
  node.give(std::move(output));
}

}  // namespace

std::span<const Operator> window_operators() {
  static constexpr Operator operators[] = {
      {"Conv", read_conv},
      {"ConvTranspose", read_conv_transpose},
      {"MaxPool", read_max_pool},
      {"AveragePool", read_average_pool},
      {"GlobalAveragePool", read_global_pool},
      {"GlobalMaxPool", read_global_pool},
      {"Pad", read_pad},
      {"LpPool", nullptr, "Caffe has no such pooling; use AveragePool or MaxPool"},
      {"GlobalLpPool", nullptr, "Caffe has no such pooling; use GlobalAveragePool"},
      {"MaxUnpool", nullptr, "Caffe has no such layer; use ConvTranspose"},
      {"MaxRoiPool", nullptr, "its boxes are values of the graph"},
      {"RoiAlign", nullptr, "its boxes are values of the graph"},
      {"DeformConv", nullptr, "Caffe has no such layer; use Conv"},
  };
  return operators;
}

}  // namespace cortado::onnx
