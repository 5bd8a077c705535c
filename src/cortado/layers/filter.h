#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct FilterOptions {
  int64_t samples = 0;  // that pass, of every batch
  static constexpr auto fields = std::tuple{field("samples", &FilterOptions::samples)};
};

// Passes samples on whose selector is not zero, in their order. Inputs: tensors of N samples, then a selector
// for each sample (N, or N x 1 x ...). Outputs: the first `samples` of those of each tensor. Since shapes do
// not depend on values here, a batch of which another number of samples passes is refused as it runs. The
// selector's gradient is zero.
class Filter : public LayerOf<FilterOptions> {
 public:
  explicit Filter(FilterOptions options);
  std::string_view type() const override { return "Filter"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  bool depends_on_values() const override { return true; }
  // Along all axes, where there is one tensor to be cut.
  Cuts cuts(std::span<const Shape> inputs) const override;
};

}  // namespace cortado
