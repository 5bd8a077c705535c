#include "cortado/layers/permute.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

Permute::Permute(PermuteOptions options) : LayerOf(std::move(options)) {
  for (size_t i = 0; i < options_.order.size(); ++i) {
    const int64_t axis = options_.order[i];
    if (axis < 0) throw UserError(fmt::format("order {} is negative; count axes from 0", axis));
    if (std::find(options_.order.begin(), options_.order.begin() + i, axis) != options_.order.begin() + i)
      throw UserError(fmt::format("order has axis {} twice; give each axis once", axis));
  }
}

std::vector<int> Permute::axes(const Shape& input) const {
  std::vector<int> axes;
  for (int64_t axis : options_.order) {
    if (axis >= input.rank())
      throw UserError(fmt::format("order has axis {}, but an input of shape {} has {} axes", axis,
                                  input.text(), input.rank()));
    axes.push_back(static_cast<int>(axis));
  }
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (std::find(options_.order.begin(), options_.order.end(), axis) == options_.order.end())
      axes.push_back(axis);
  }
  return axes;
}

std::vector<Shape> Permute::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("input", inputs.size(), 1, 1);
  check_count("output", outputs, 1, 1);
  Shape output;
  for (int axis : axes(inputs[0])) output.append(inputs[0][axis]);
  return {output};
}

Box Permute::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  const std::vector<int> from = axes(inputs[0]);
  Box box = output_box;
  for (int axis = 0; axis < output_box.rank(); ++axis) box[from[axis]] = output_box[axis];
  return box;
}

Cuts Permute::cuts(std::span<const Shape> inputs) const { return cuts_outside(inputs[0].rank(), 0, 0); }

}  // namespace cortado
