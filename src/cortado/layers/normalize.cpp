#include "cortado/layers/normalize.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> Normalize::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  if (inputs[0].rank() < 2)
    throw UserError(fmt::format("input of shape {} has no channel axis", inputs[0].text()));
  return {inputs[0]};
}

Box Normalize::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  Box box = output_box;
  const Range summed = summed_axes(box.rank());
  for (int64_t axis = summed.begin; axis < summed.end; ++axis) {
    const int a = static_cast<int>(axis);
    box[a] = {0, inputs[0][a]};
  }
  return box;
}

Cuts Normalize::cuts(std::span<const Shape> inputs) const {
  const Range summed = summed_axes(inputs[0].rank());
  return cuts_outside(inputs[0].rank(), static_cast<int>(summed.begin), static_cast<int>(summed.end));
}

std::vector<ParameterSpec> Normalize::parameters(std::span<const Shape> inputs) const {
  return {{"weight", options_.channel_shared ? Shape{} : Shape{inputs[0][1]}, options_.filler}};
}

Flops Normalize::forward_flops(std::span<const Shape>, std::span<const Shape> outputs) const {
  return {4 * static_cast<double>(outputs[0].size())};  // square, sum, quotient, scale
}

}  // namespace cortado
