#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct SoftmaxOptions {
  int axis = 1;
  static constexpr auto fields = std::tuple{field("axis", &SoftmaxOptions::axis)};
};

// y = exp(x - m) / sum(exp(x - m)) along `axis`, m the maximum along it. Output: the shape of the input.
class Softmax : public LayerOf<SoftmaxOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Softmax"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  OutputRule output_rule(int) const override { return OutputRule::f32; }
};

}  // namespace cortado
