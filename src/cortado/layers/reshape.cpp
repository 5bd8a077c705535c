#include "cortado/layers/reshape.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

Reshape::Reshape(ReshapeOptions options) : LayerOf(std::move(options)) {
  int inferred = 0;
  for (int64_t extent : options_.shape) {
    if (extent < -1) throw UserError(fmt::format("dim must be -1, 0 or positive, is {}", extent));
    if (extent == -1) ++inferred;
  }
  if (inferred > 1) throw UserError(fmt::format("at most one dim may be -1, {} are", inferred));
  if (options_.num_axes < -1) {
    throw UserError(fmt::format("num_axes must be -1 or at least 0, is {}", options_.num_axes));
  }
}

std::vector<Shape> Reshape::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("input", inputs.size(), 1, 1);
  check_count("output", outputs, 1, 1);
  const Shape& input = inputs[0];
  int begin = options_.axis >= 0 ? options_.axis : input.rank() + options_.axis + 1;
  int end = options_.num_axes == -1 ? input.rank() : begin + options_.num_axes;
  if (begin < 0 || begin > input.rank() || end > input.rank()) {
    throw UserError(fmt::format("axis {} and num_axes {} lie outside a tensor of shape {}", options_.axis,
                                options_.num_axes, input.text()));
  }
  Shape output;
  int inferred_axis = -1;
  for (int axis = 0; axis < begin; ++axis) output.append(input[axis]);
  for (int64_t extent : options_.shape) {
    int axis = output.rank();
    if (extent == 0 && axis >= input.rank()) {
      throw UserError(
          fmt::format("dim 0 copies axis {}, which a tensor of shape {} does not have", axis, input.text()));
    }
    if (extent == -1) inferred_axis = axis;
    output.append(extent == 0 ? input[axis] : extent == -1 ? 1 : extent);
  }
  for (int axis = end; axis < input.rank(); ++axis) output.append(input[axis]);
  if (inferred_axis >= 0 && output.size() > 0) output.set(inferred_axis, input.size() / output.size());
  if (output.size() != input.size()) {
    throw UserError(fmt::format("cannot reshape {} ({} elements) to {} ({} elements)", input.text(),
                                input.size(), output.text(), output.size()));
  }
  return {output};
}

// Equal sample axes make a sample's elements the same row-major range on both sides.
Box Reshape::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  return box_of_leading_axes(inputs[0], output_box, cuts(inputs).n ? 1 : 0);
}

Cuts Reshape::cuts(std::span<const Shape> inputs) const {
  Shape output = output_shapes(inputs, 1)[0];
  bool same_samples = inputs[0].rank() > 0 && output.rank() > 0 && inputs[0][0] == output[0];
  return same_samples ? Cuts::sample() : Cuts{};
}

Flops Reshape::forward_flops(std::span<const Shape>, std::span<const Shape>) const { return {}; }

}  // namespace cortado
