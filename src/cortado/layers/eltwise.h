#pragma once

#include <vector>

#include "cortado/layers/layer_of.h"

namespace cortado {

struct EltwiseOptions {
  enum class Operation { prod, sum, max };
  Operation operation = Operation::sum;
  std::vector<double> coeff;     // sum only: one factor per input; empty: all 1
  bool stable_prod_grad = true;  // prod: product of the other inputs instead of output / input
  static constexpr auto fields =
      std::tuple{field("operation", &EltwiseOptions::operation), field("coeff", &EltwiseOptions::coeff),
                 field("stable_prod_grad", &EltwiseOptions::stable_prod_grad)};
};

// Elementwise product, weighted sum or maximum of two or more inputs of one shape. The gradient of a maximum
// goes to one input: of equal values the second of inputs 0 and 1, otherwise the earlier input (Caffe's
// rule).
class Eltwise : public LayerOf<EltwiseOptions> {
 public:
  explicit Eltwise(EltwiseOptions options);
  std::string_view type() const override { return "Eltwise"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool may_fuse_with(const Layer& next) const override;
};

}  // namespace cortado
