#pragma once

#include "cortado/layers/loss_of.h"

namespace cortado {

// loss = sum((a - b)^2) / (2 N). Inputs: a and b, N samples of equally many elements, both with gradient.
class EuclideanLoss : public LossOf<NoOptions> {
 public:
  using LossOf::LossOf;
  std::string_view type() const override { return "EuclideanLoss"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
};

}  // namespace cortado
