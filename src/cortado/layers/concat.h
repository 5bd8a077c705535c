#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct ConcatOptions {
  int axis = 1;
  static constexpr auto fields = std::tuple{field("axis", &ConcatOptions::axis)};
};

// Joins its inputs along `axis`; all other extents are equal.
class Concat : public LayerOf<ConcatOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Concat"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
};

}  // namespace cortado
