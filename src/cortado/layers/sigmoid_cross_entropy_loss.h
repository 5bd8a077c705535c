#pragma once

#include <optional>

#include "cortado/layers/loss_normalization.h"
#include "cortado/layers/loss_of.h"

namespace cortado {

struct SigmoidCrossEntropyLossOptions {
  std::optional<int> ignore_label;
  Normalization normalization = Normalization::batch_size;
  static constexpr auto fields =
      std::tuple{field("ignore_label", &SigmoidCrossEntropyLossOptions::ignore_label),
                 field("normalization", &SigmoidCrossEntropyLossOptions::normalization)};
};

// loss = -sum(t log(s) + (1 - t) log(1 - s)) / normalizer, s = sigmoid(x), over all elements whose target
// (cut to an integer) is not ignored. Inputs: x and targets t, equally many elements.
class SigmoidCrossEntropyLoss : public LossOf<SigmoidCrossEntropyLossOptions> {
 public:
  using LossOf::LossOf;
  std::string_view type() const override { return "SigmoidCrossEntropyLoss"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool differentiable(int input) const override { return input == 0; }
};

}  // namespace cortado
