#include "cortado/layers/contrastive_loss.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> ContrastiveLoss::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 3, 3);
  check_count("output", outputs, 1, 1);
  check_same_samples(inputs[0], inputs[1]);
  for (const Shape& shape : inputs.first(2)) {
    if (shape.rank() >= 2 && shape.count(2) == 1) continue;
    throw UserError(
        fmt::format("needs features of shape N x C (further axes of extent 1), has {}", shape.text()));
  }
  if (inputs[2].size() != inputs[0][0]) {
    throw UserError(fmt::format("needs one similarity for each of the {} pairs, but input 3 has shape {}",
                                inputs[0][0], inputs[2].text()));
  }
  return {Shape{}};
}

Box ContrastiveLoss::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  return box_of_leading_axes(inputs[input], output_box, cuts(inputs).n ? 1 : 0);
}

Cuts ContrastiveLoss::cuts(std::span<const Shape> inputs) const {
  return {.n = inputs[2].rank() > 0 && inputs[2][0] == inputs[0][0]};
}

Flops ContrastiveLoss::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {3 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
