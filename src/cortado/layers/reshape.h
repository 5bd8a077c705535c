#pragma once

#include <vector>

#include "cortado/layers/layer_of.h"

namespace cortado {

struct ReshapeOptions {
  std::vector<int64_t> shape;  // 0: copy the input's extent; -1 (at most one): whatever remains
  int axis = 0;                // first axis replaced; negative counts from after the last axis
  int num_axes = -1;           // number of axes replaced; -1: all from `axis` on
  static constexpr auto fields =
      std::tuple{field("shape", &ReshapeOptions::shape), field("axis", &ReshapeOptions::axis),
                 field("num_axes", &ReshapeOptions::num_axes)};
};

// The same elements, in spoken row-major order, under another shape.
class Reshape : public LayerOf<ReshapeOptions> {
 public:
  explicit Reshape(ReshapeOptions options);
  std::string_view type() const override { return "Reshape"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
};

}  // namespace cortado
