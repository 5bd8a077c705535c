#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cortado/layers/loss_normalization.h"
#include "cortado/layers/loss_of.h"

namespace cortado {

struct InfogainLossOptions {
  std::string source;  // the file that the matrix is from; empty: it is input 2
  int axis = 1;
  std::optional<int> ignore_label;
  Normalization normalization = Normalization::valid;
  static constexpr auto fields = std::tuple{unkeyed_field("source", &InfogainLossOptions::source),
                                            field("axis", &InfogainLossOptions::axis),
                                            field("ignore_label", &InfogainLossOptions::ignore_label),
                                            field("normalization", &InfogainLossOptions::normalization)};
};

// loss = -sum(H[label, k] * log(max(softmax(scores)[k], 1e-20))) / normalizer over all classes k of all
// positions whose label is not ignored. Inputs: scores, labels (as SoftmaxLoss), and H, classes x classes,
// unless it is from a file. Outputs: loss (scalar) and, when asked for, the probabilities (no gradient).
class InfogainLoss : public LossOf<InfogainLossOptions> {
 public:
  // `matrix`: what is in `source`, row by row.
  explicit InfogainLoss(InfogainLossOptions options, std::vector<float> matrix = {})
      : LossOf(std::move(options)), matrix_(std::move(matrix)) {}
  const std::vector<float>& matrix() const { return matrix_; }
  std::string_view type() const override { return "InfogainLoss"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool differentiable(int input) const override { return input == 0; }

 private:
  std::vector<float> matrix_;
};

}  // namespace cortado
