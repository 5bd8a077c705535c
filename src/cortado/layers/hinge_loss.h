#pragma once

#include "cortado/layers/loss_of.h"

namespace cortado {

struct HingeLossOptions {
  enum class Norm { l1, l2 };
  Norm norm = Norm::l1;
  static constexpr auto fields = std::tuple{field("norm", &HingeLossOptions::norm)};
};

// One-against-all: loss = sum(max(0, 1 - s x)^p) / N, s = +1 for the labelled class, else -1; p = 1 or 2.
// Inputs: scores (N samples; all other axes together are the classes) and N labels.
class HingeLoss : public LossOf<HingeLossOptions> {
 public:
  using LossOf::LossOf;
  std::string_view type() const override { return "HingeLoss"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool differentiable(int input) const override { return input == 0; }
};

}  // namespace cortado
