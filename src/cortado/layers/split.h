#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

// Every output is the input; the input's gradient is the sum of the outputs'.
class Split : public LayerOf<NoOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Split"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
};

}  // namespace cortado
