#pragma once

#include "cortado/layers/loss_of.h"

namespace cortado {

// loss = -sum(log(max(p, 1e-20))) / N, p being what the first input has for the labelled class. Inputs:
// probabilities (N samples; all other axes together are the classes) and N labels. The gradient is Caffe's:
// -1 / max(p, 1e-20) / N at the labelled class.
class MultinomialLogisticLoss : public LossOf<NoOptions> {
 public:
  using LossOf::LossOf;
  std::string_view type() const override { return "MultinomialLogisticLoss"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  bool differentiable(int input) const override { return input == 0; }
};

}  // namespace cortado
