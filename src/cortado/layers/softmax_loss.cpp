#include "cortado/layers/softmax_loss.h"

#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> SoftmaxLoss::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 2);
  check_count("outputs", outputs, 1, 2);
  check_labels(inputs[0], options_.axis, inputs[1]);
  if (outputs == 1) return {Shape{}};
  return {Shape{}, inputs[0]};
}

Box SoftmaxLoss::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  if (input == 1) return label_box(inputs[0], options_.axis, inputs[1], output_box);
  return box_with_whole_axis(inputs[0], output_box, options_.axis);
}

Cuts SoftmaxLoss::cuts(std::span<const Shape> inputs) const {
  return label_cuts(inputs[0], options_.axis, inputs[1]);
}

Flops SoftmaxLoss::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {5 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
