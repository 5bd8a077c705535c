#include "cortado/layers/concat.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> Concat::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, -1);
  check_count("output", outputs, 1, 1);
  int axis = inputs[0].canonical_axis(options_.axis);
  Shape joined = inputs[0];
  for (const Shape& shape : inputs.subspan(1)) {
    Shape expected = joined;
    if (shape.rank() == joined.rank()) expected.set(axis, shape[axis]);
    if (shape != expected) {
      throw UserError(fmt::format("cannot join {} and {} along axis {}: all other extents must be equal",
                                  inputs[0].text(), shape.text(), axis));
    }
    joined.set(axis, joined[axis] + shape[axis]);
  }
  return {joined};
}

Box Concat::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  int axis = inputs[0].canonical_axis(options_.axis);
  int64_t offset = 0;
  for (int i = 0; i < input; ++i) offset += inputs[i][axis];
  int64_t extent = inputs[input][axis];
  Box box = output_box;
  box[axis] = {std::clamp<int64_t>(output_box[axis].begin - offset, 0, extent),
               std::clamp<int64_t>(output_box[axis].end - offset, 0, extent)};
  return box;
}

Cuts Concat::cuts(std::span<const Shape> inputs) const { return cuts_outside(inputs[0].rank(), 0, 0); }

}  // namespace cortado
