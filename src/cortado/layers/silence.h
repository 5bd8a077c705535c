#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

// Takes inputs that nobody else wants, so that they are not outputs of the network. No outputs; its gradient
// is zero, which is as good as none.
class Silence : public LayerOf<NoOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Silence"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  // Reads nothing, so that nothing travels for it.
  Box input_box(std::span<const Shape> inputs, int input, int, const Box&) const override {
    return Box::whole(Shape(std::vector<int64_t>(inputs[input].rank(), 0)));
  }
  bool differentiable(int) const override { return false; }
};

}  // namespace cortado
