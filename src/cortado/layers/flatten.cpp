#include "cortado/layers/flatten.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> Flatten::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("input", inputs.size(), 1, 1);
  check_count("output", outputs, 1, 1);
  int begin = inputs[0].canonical_axis(options_.axis);
  int last = inputs[0].canonical_axis(options_.end_axis);
  if (last < begin) {
    throw UserError(fmt::format("end_axis {} lies before axis {} in a tensor of shape {}", options_.end_axis,
                                options_.axis, inputs[0].text()));
  }
  Shape output;
  for (int axis = 0; axis < begin; ++axis) output.append(inputs[0][axis]);
  output.append(inputs[0].count(begin, last + 1));
  for (int axis = last + 1; axis < inputs[0].rank(); ++axis) output.append(inputs[0][axis]);
  return {output};
}

// Equal sample axes make a sample's elements the same row-major range on both sides.
Box Flatten::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  return box_of_leading_axes(inputs[0], output_box, cuts(inputs).n ? 1 : 0);
}

Cuts Flatten::cuts(std::span<const Shape> inputs) const {
  Shape output = output_shapes(inputs, 1)[0];
  bool same_samples = inputs[0].rank() > 0 && output.rank() > 0 && inputs[0][0] == output[0];
  return same_samples ? Cuts::sample() : Cuts{};
}

Flops Flatten::forward_flops(std::span<const Shape>, std::span<const Shape>) const { return {}; }

}  // namespace cortado
