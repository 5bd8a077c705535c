#include "cortado/layers/mvn.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

std::vector<Shape> Mvn::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  if (inputs[0].rank() < 2) {
    throw UserError(fmt::format("input of shape {} has no channel axis", inputs[0].text()));
  }
  return {inputs[0]};
}

Box Mvn::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  Box box = Box::whole(inputs[0]);
  box[0] = output_box[0];
  if (!options_.across_channels) box[1] = output_box[1];
  return box;
}

Cuts Mvn::cuts(std::span<const Shape>) const { return {.n = true, .c = !options_.across_channels}; }

Flops Mvn::forward_flops(std::span<const Shape>, std::span<const Shape> outputs) const {
  double per_element = options_.normalize_variance ? 6 : 2;  // mean 1, difference 1, variance 2, quotient 2
  return {per_element * outputs[0].size()};
}

}  // namespace cortado
