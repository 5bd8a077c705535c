#include "cortado/onnx/read/node_window.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado::onnx {
namespace {

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

}  // namespace

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

Value unpadded(Value input) {
  input.pads.clear();
  return input;
}

void set_option(google::protobuf::RepeatedField<uint32_t>& field, const std::string& what,
                const std::vector<int64_t>& values, int64_t fallback) {
  const bool equal = std::ranges::all_of(values, [&](int64_t value) { return value == values[0]; });
  if (equal && values[0] == fallback) return;
  for (int64_t value : equal ? std::vector<int64_t>{values[0]} : values)
    field.Add(window_option(what, value, 0));
}

}  // namespace cortado::onnx
