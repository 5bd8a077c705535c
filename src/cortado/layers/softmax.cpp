#include "cortado/layers/softmax.h"

#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> Softmax::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("input", inputs.size(), 1, 1);
  check_count("output", outputs, 1, 1);
  inputs[0].canonical_axis(options_.axis);
  return {inputs[0]};
}

Box Softmax::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  return box_with_whole_axis(inputs[0], output_box, options_.axis);
}

// A part along the axis itself is computed from the whole axis.
Cuts Softmax::cuts(std::span<const Shape> inputs) const { return cuts_outside(inputs[0].rank(), 0, 0); }

// Maximum, difference, exponential, sum, quotient.
Flops Softmax::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {5 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
