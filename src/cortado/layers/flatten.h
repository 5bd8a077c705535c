#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct FlattenOptions {
  int axis = 1;
  int end_axis = -1;
  static constexpr auto fields =
      std::tuple{field("axis", &FlattenOptions::axis), field("end_axis", &FlattenOptions::end_axis)};
};

// Joins the axes [axis, end_axis] into one, in spoken row-major order.
class Flatten : public LayerOf<FlattenOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Flatten"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
};

}  // namespace cortado
