#pragma once

#include <optional>

#include "cortado/layers/layer_of.h"

namespace cortado {

struct AccuracyOptions {
  int top_k = 1;
  int axis = 1;
  std::optional<int> ignore_label;
  static constexpr auto fields =
      std::tuple{field("top_k", &AccuracyOptions::top_k), field("axis", &AccuracyOptions::axis),
                 field("ignore_label", &AccuracyOptions::ignore_label)};
};

// Share of the positions whose label is among the top_k scores. A position is correct when fewer than top_k
// *other* classes score at least as high as the labelled one, so ties count against it.
// Inputs: scores and labels as of SoftmaxLoss. Outputs: accuracy (scalar) and, when asked for, the accuracy
// of each class (0 for a class that does not occur).
class Accuracy : public LayerOf<AccuracyOptions> {
 public:
  explicit Accuracy(AccuracyOptions options);
  std::string_view type() const override { return "Accuracy"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Shape domain(std::span<const Shape> inputs, std::span<const Shape>) const override { return inputs[0]; }
  Box output_box(std::span<const Shape> inputs, std::span<const Shape> outputs, int output,
                 const Box& domain_box) const override;
  bool sums(int) const override { return true; }
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool differentiable(int) const override { return false; }
  OutputRule output_rule(int) const override { return OutputRule::f32; }
};

}  // namespace cortado
