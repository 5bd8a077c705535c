#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

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

std::span<const Operator> pad_operators() {
  static constexpr Operator operators[] = {
      {"Pad", read_pad},
  };
  return operators;
}

}  // namespace cortado::onnx
