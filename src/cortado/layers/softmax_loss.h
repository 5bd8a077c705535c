#pragma once

#include <optional>

#include "cortado/layers/loss_normalization.h"
#include "cortado/layers/loss_of.h"

namespace cortado {

struct SoftmaxLossOptions {
  int axis = 1;
  std::optional<int> ignore_label;
  Normalization normalization = Normalization::valid;
  double label_smoothing = 0;  // in [0, 1)
  static constexpr auto fields = std::tuple{field("axis", &SoftmaxLossOptions::axis),
                                            field("ignore_label", &SoftmaxLossOptions::ignore_label),
                                            field("normalization", &SoftmaxLossOptions::normalization),
                                            field("label_smoothing", &SoftmaxLossOptions::label_smoothing)};
};

// loss = -sum(log(max(softmax(scores)[label], smallest normal float))) / normalizer over all positions whose
// label is not ignored. With label smoothing e (Szegedy et al., "Rethinking the Inception architecture",
// 2016, section 7) the term of a position is 1 - e times that of its label plus e times the mean of all
// classes' terms. Inputs: scores, labels (one per position: all axes of the scores but `axis`, in any shape
// of that many elements). Outputs: loss (scalar) and, when asked for, the probabilities (no gradient).
class SoftmaxLoss : public LossOf<SoftmaxLossOptions> {
 public:
  using LossOf::LossOf;
  std::string_view type() const override { return "SoftmaxWithLoss"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool differentiable(int input) const override { return input == 0; }
};

}  // namespace cortado
