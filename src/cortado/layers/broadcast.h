#pragma once

#include "cortado/layers/layer.h"

namespace cortado {

// How the second operand of Scale and Bias lies in the first: its axes are the first's axes
// [axis, axis + num_axes), and it is repeated along all others.
struct Broadcast {
  int axis = 1;
  int num_axes = 1;  // of a parameter operand; -1: all to the end, 0: a scalar. Ignored with two inputs.

  // Shape of the operand: a parameter's for one input, the second input's for two. Throws UserError when
  // the axes do not exist or extents differ.
  Shape operand(std::span<const Shape> inputs) const;
  // First axis of the first input that the operand has, not negative.
  int first_axis(std::span<const Shape> inputs) const;
  // The operand's part that belongs to `box` of the first input.
  Box operand_box(std::span<const Shape> inputs, const Box& box) const;
  static constexpr auto fields =
      std::tuple{field("axis", &Broadcast::axis), field("num_axes", &Broadcast::num_axes)};
};

}  // namespace cortado
