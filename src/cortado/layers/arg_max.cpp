#include "cortado/layers/arg_max.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

ArgMax::ArgMax(ArgMaxOptions options) : LayerOf(options) {
  if (options_.top_k < 1) throw UserError(fmt::format("top_k must be at least 1, is {}", options_.top_k));
}

std::vector<Shape> ArgMax::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("input", inputs.size(), 1, 1);
  check_count("output", outputs, 1, 1);
  const Shape& input = inputs[0];
  int axis = input.canonical_axis(options_.axis.value_or(0));
  int64_t candidates = options_.axis ? input[axis] : input.count(1);
  if (options_.top_k > candidates) {
    throw UserError(fmt::format("top_k {} is more than the {} elements to choose from in {}", options_.top_k,
                                candidates, input.text()));
  }
  Shape output = input;
  if (options_.axis) {
    output.set(axis, options_.top_k);
  } else {
    output = Shape{input[0], options_.out_max_val ? 2 : 1, options_.top_k};
    while (output.rank() < input.rank()) output.append(1);
  }
  return {output};
}

Box ArgMax::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  if (options_.axis) return box_with_whole_axis(inputs[0], output_box, *options_.axis);
  return box_of_leading_axes(inputs[0], output_box, 1);
}

Cuts ArgMax::cuts(std::span<const Shape> inputs) const {
  if (!options_.axis) return Cuts::sample();
  int axis = inputs[0].canonical_axis(*options_.axis);
  return cuts_outside(inputs[0].rank(), axis, axis + 1);
}

Flops ArgMax::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {1 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
