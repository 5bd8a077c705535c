#include "cortado/layers/reduction.h"

#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> Reduction::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("input", inputs.size(), 1, 1);
  check_count("output", outputs, 1, 1);
  int axis = inputs[0].canonical_axis(options_.axis);
  return {Shape(inputs[0].extents().first(axis))};
}

Box Reduction::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  return box_of_leading_axes(inputs[0], output_box, output_box.rank());
}

Cuts Reduction::cuts(std::span<const Shape> inputs) const {
  return cuts_outside(inputs[0].canonical_axis(options_.axis), 0, 0);
}

Flops Reduction::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  double each = options_.operation == ReductionOptions::Operation::sumsq ? 2 : 1;
  return {each * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
