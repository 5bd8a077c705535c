#include "cortado/layers/sigmoid_cross_entropy_loss.h"

#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> SigmoidCrossEntropyLoss::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 2);
  check_count("output", outputs, 1, 1);
  check_same_samples(inputs[0], inputs[1]);
  return {Shape{}};
}

Box SigmoidCrossEntropyLoss::input_box(std::span<const Shape> inputs, int input, int,
                                       const Box& output_box) const {
  return inputs[input] == inputs[0] ? output_box : box_of_leading_axes(inputs[input], output_box, 1);
}

Cuts SigmoidCrossEntropyLoss::cuts(std::span<const Shape> inputs) const {
  return inputs[0] == inputs[1] ? cuts_outside(inputs[0].rank(), 0, 0) : Cuts::sample();
}

Flops SigmoidCrossEntropyLoss::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {6 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
