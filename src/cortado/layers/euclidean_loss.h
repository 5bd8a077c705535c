#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

// loss = sum((a - b)^2) / (2 N). Inputs: a and b, N samples of equally many elements, both with gradient.
class EuclideanLoss : public LayerOf<NoOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "EuclideanLoss"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Shape domain(std::span<const Shape> inputs, std::span<const Shape>) const override { return inputs[0]; }
  bool sums(int output) const override { return output == 0; }
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  double default_loss_weight(int output) const override { return output == 0 ? 1 : 0; }
};

}  // namespace cortado
