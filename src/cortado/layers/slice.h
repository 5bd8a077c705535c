#pragma once

#include <vector>

#include "cortado/layers/layer_of.h"

namespace cortado {

struct SliceOptions {
  int axis = 1;
  std::vector<int64_t> slice_points;  // first index of each output but the first; empty: equal parts
  static constexpr auto fields =
      std::tuple{field("axis", &SliceOptions::axis), field("slice_points", &SliceOptions::slice_points)};
};

// Cuts its input along `axis` into as many parts as there are outputs. Every box of an output is made from an
// input box that is whole along `axis`.
class Slice : public LayerOf<SliceOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Slice"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
};

}  // namespace cortado
