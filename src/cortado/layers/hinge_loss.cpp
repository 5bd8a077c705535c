#include "cortado/layers/hinge_loss.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

HingeLoss::HingeLoss(HingeLossOptions options) : options_(options) {}

std::vector<Shape> HingeLoss::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 2);
  check_count("output", outputs, 1, 1);
  inputs[0].canonical_axis(0);
  if (inputs[1].size() != inputs[0][0]) {
    throw UserError(
        fmt::format("needs one label for each of the {} samples of scores {}, but the labels have shape {}",
                    inputs[0][0], inputs[0].text(), inputs[1].text()));
  }
  return {Shape{}};
}

Flops HingeLoss::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {3 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
