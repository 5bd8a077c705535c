#pragma once

#include "cortado/layers/loss_of.h"

namespace cortado {

struct ContrastiveLossOptions {
  double margin = 1;
  bool legacy_version = false;  // (margin - d^2) instead of (margin - d)^2
  static constexpr auto fields = std::tuple{field("margin", &ContrastiveLossOptions::margin),
                                            field("legacy_version", &ContrastiveLossOptions::legacy_version)};
};

// loss = sum(y d^2 + (1 - y) max(margin - d, 0)^2) / (2 N), d = |a - b|; y is non-zero for similar pairs
// (Hadsell et al., "Dimensionality reduction by learning an invariant mapping", CVPR 2006).
// Inputs: a and b of shape N x C, and N similarities; further axes must be 1.
class ContrastiveLoss : public LossOf<ContrastiveLossOptions> {
 public:
  using LossOf::LossOf;
  std::string_view type() const override { return "ContrastiveLoss"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool differentiable(int input) const override { return input < 2; }
};

}  // namespace cortado
