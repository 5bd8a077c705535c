#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

// A loss: output 0 is a sum over input 0, and counts with weight 1 where the file says none.
template <typename Options>
class LossOf : public LayerOf<Options> {
 public:
  using LayerOf<Options>::LayerOf;
  Shape domain(std::span<const Shape> inputs, std::span<const Shape>) const override { return inputs[0]; }
  bool sums(int output) const override { return output == 0; }
  double default_loss_weight(int output) const override { return output == 0 ? 1 : 0; }
};

}  // namespace cortado
