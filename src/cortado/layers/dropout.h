#pragma once

#include "cortado/base/random.h"
#include "cortado/layers/layer_of.h"

namespace cortado {

struct DropoutOptions {
  double ratio = 0.5;  // probability of dropping an element, in [0, 1]

  // Whether the element of global index `index` (row-major in spoken order N, C, D, H, W) is kept: neither
  // the order in memory nor the cut changes a mask.
  bool keeps(const RandomStream& random, uint64_t index) const { return random.uniform(index) >= ratio; }
  double kept_scale() const { return ratio < 1 ? 1 / (1 - ratio) : 0; }  // of ratio 1 nothing is kept
  static constexpr auto fields = std::tuple{field("ratio", &DropoutOptions::ratio)};
};

// Training: y = kept ? x / (1 - ratio) : 0. Testing: y = x.
class Dropout : public LayerOf<DropoutOptions> {
 public:
  explicit Dropout(DropoutOptions options);  // throws UserError on a ratio outside [0, 1]

  std::string_view type() const override { return "Dropout"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }
};

}  // namespace cortado
