#pragma once

#include "cortado/layers/layer.h"

namespace cortado {

// Takes inputs that nobody else wants, so that they are not outputs of the network. No outputs; its gradient
// is zero, which is as good as none.
class Silence : public Layer {
 public:
  std::string_view type() const override { return "Silence"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  bool differentiable(int) const override { return false; }
};

}  // namespace cortado
