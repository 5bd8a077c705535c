#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

// Chooses samples: y[i] = x[index[i]]. Inputs: x, whose axis 0 is indexed, and M indices (one axis). Output:
// M samples; one that is named several times gets the sum of their gradients.
class BatchReindex : public LayerOf<NoOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "BatchReindex"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  bool differentiable(int input) const override { return input == 0; }
};

}  // namespace cortado
