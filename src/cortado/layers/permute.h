#pragma once

#include <vector>

#include "cortado/layers/layer_of.h"

namespace cortado {

struct PermuteOptions {
  std::vector<int64_t> order;  // input axes that become output axes 0, 1, ...; those left out follow in order
  static constexpr auto fields = std::tuple{field("order", &PermuteOptions::order)};
};

// The input with its axes in another order: y[i_0, i_1, ...] = x[j_0, j_1, ...] with j_(order[a]) = i_a
// (Liu et al., "SSD", ECCV 2016: its variant of Caffe).
class Permute : public LayerOf<PermuteOptions> {
 public:
  explicit Permute(PermuteOptions options);  // throws UserError on an axis that is given twice or negative
  std::string_view type() const override { return "Permute"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  // The input's axis that each axis of the output is. Throws UserError on an axis that the input lacks.
  std::vector<int> axes(const Shape& input) const;
};

}  // namespace cortado
