#include "cortado/layers/eltwise.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"
#include "cortado/layers/pointwise.h"

namespace cortado {

Eltwise::Eltwise(EltwiseOptions options) : LayerOf(std::move(options)) {
  if (!options_.coeff.empty() && options_.operation == EltwiseOptions::Operation::prod) {
    throw UserError("coeff is not for operation PROD; remove it");
  }
}

std::vector<Shape> Eltwise::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, -1);
  check_count("output", outputs, 1, 1);
  if (!options_.coeff.empty() && options_.coeff.size() != inputs.size()) {
    throw UserError(fmt::format("needs one coeff for each of the {} inputs, has {}", inputs.size(),
                                options_.coeff.size()));
  }
  for (const Shape& shape : inputs.subspan(1)) {
    if (shape != inputs[0]) {
      throw UserError(
          fmt::format("needs inputs of equal shape, has {} and {}", inputs[0].text(), shape.text()));
    }
  }
  return {inputs[0]};
}

Box Eltwise::input_box(std::span<const Shape>, int, int, const Box& output_box) const { return output_box; }

Cuts Eltwise::cuts(std::span<const Shape> inputs) const { return cuts_outside(inputs[0].rank(), 0, 0); }

Flops Eltwise::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  double factors = options_.coeff.empty() ? 0 : static_cast<double>(inputs.size());
  return {(static_cast<double>(inputs.size()) - 1 + factors) * static_cast<double>(inputs[0].size())};
}

bool Eltwise::may_fuse_with(const Layer& next) const { return is_relu(next); }

}  // namespace cortado
