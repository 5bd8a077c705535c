#include "cortado/layers/batch_reindex.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> BatchReindex::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 2);
  check_count("output", outputs, 1, 1);
  inputs[0].canonical_axis(0);
  if (inputs[1].rank() != 1)
    throw UserError(fmt::format("the indices must have one axis, input 2 has shape {}", inputs[1].text()));
  Shape output = inputs[0];
  output.set(0, inputs[1][0]);
  return {output};
}

Box BatchReindex::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  if (input == 0) return box_with_whole_axis(inputs[0], output_box, 0);
  return box_of_leading_axes(inputs[1], output_box, 1);
}

Cuts BatchReindex::cuts(std::span<const Shape> inputs) const { return cuts_outside(inputs[0].rank(), 0, 0); }

}  // namespace cortado
