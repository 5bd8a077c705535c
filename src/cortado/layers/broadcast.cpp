#include "cortado/layers/broadcast.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

int Broadcast::first_axis(std::span<const Shape> inputs) const {
  bool scalar = inputs.size() == 2 ? inputs[1].rank() == 0 : num_axes == 0;
  return scalar ? 0 : inputs[0].canonical_axis(axis);
}

Shape Broadcast::operand(std::span<const Shape> inputs) const {
  check_count("inputs", inputs.size(), 1, 2);
  const Shape& input = inputs[0];
  int first = first_axis(inputs);
  int axes = inputs.size() == 2 ? inputs[1].rank() : num_axes == -1 ? input.rank() - first : num_axes;
  if (axes < 0 || first + axes > input.rank()) {
    throw UserError(fmt::format("an operand of {} axes from axis {} on does not lie in an input of shape {}",
                                axes, first, input.text()));
  }
  Shape operand(input.extents().subspan(first, axes));
  if (inputs.size() == 2 && inputs[1] != operand) {
    throw UserError(fmt::format("the second input is {}, must be {} to match axis {} and following of {}",
                                inputs[1].text(), operand.text(), first, input.text()));
  }
  return operand;
}

Box Broadcast::operand_box(std::span<const Shape> inputs, const Box& box) const {
  Box part = Box::whole(operand(inputs));
  int first = first_axis(inputs);
  for (int i = 0; i < part.rank(); ++i) part[i] = box[first + i];
  return part;
}

}  // namespace cortado
