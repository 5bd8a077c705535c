#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/window.h"
#include "cortado/onnx/read/node_window.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

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

}  // namespace

std::span<const Operator> pooling_operators() {
  static constexpr Operator operators[] = {
      {"MaxPool", read_max_pool},
      {"AveragePool", read_average_pool},
      {"GlobalAveragePool", read_global_pool},
      {"GlobalMaxPool", read_global_pool},
      {"LpPool", nullptr, "Caffe has no such pooling; use AveragePool or MaxPool"},
      {"GlobalLpPool", nullptr, "Caffe has no such pooling; use GlobalAveragePool"},
      {"MaxUnpool", nullptr, "Caffe has no such layer; use ConvTranspose"},
      {"MaxRoiPool", nullptr, "its boxes are values of the graph"},
      {"RoiAlign", nullptr, "its boxes are values of the graph"},
  };
  return operators;
}

}  // namespace cortado::onnx
