#include "cortado/layers/hinge_loss.h"

#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> HingeLoss::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 2);
  check_count("output", outputs, 1, 1);
  check_sample_labels(inputs[0], inputs[1]);
  return {Shape{}};
}

Box HingeLoss::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  return box_of_leading_axes(inputs[input], output_box, cuts(inputs).n ? 1 : 0);
}

Cuts HingeLoss::cuts(std::span<const Shape> inputs) const { return sample_label_cuts(inputs[0], inputs[1]); }

Flops HingeLoss::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {3 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
