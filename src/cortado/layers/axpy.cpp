#include "cortado/layers/axpy.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> Axpy::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 3, 3);
  check_count("output", outputs, 1, 1);
  const Shape &factor = inputs[0], &x = inputs[1];
  if (inputs[2] != x) {
    throw UserError(
        fmt::format("inputs 2 and 3 must have one shape, have {} and {}", x.text(), inputs[2].text()));
  }
  if (x.rank() < 2 || factor.rank() < 2 || factor[0] != x[0] || factor[1] != x[1] || factor.count(2) != 1) {
    throw UserError(
        fmt::format("needs one factor for each sample and channel of {}, but input 1 has shape {}", x.text(),
                    factor.text()));
  }
  return {x};
}

Box Axpy::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  return input == 0 ? box_of_leading_axes(inputs[0], output_box, 2) : output_box;
}

Cuts Axpy::cuts(std::span<const Shape> inputs) const { return cuts_outside(inputs[1].rank(), 0, 0); }

Flops Axpy::forward_flops(std::span<const Shape>, std::span<const Shape> outputs) const {
  return {2 * static_cast<double>(outputs[0].size())};
}

}  // namespace cortado
