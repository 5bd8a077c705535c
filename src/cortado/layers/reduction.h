#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct ReductionOptions {
  enum class Operation { sum, asum, sumsq, mean };
  Operation operation = Operation::sum;
  int axis = 0;
  double coeff = 1;
  static constexpr auto fields =
      std::tuple{field("operation", &ReductionOptions::operation), field("axis", &ReductionOptions::axis),
                 field("coeff", &ReductionOptions::coeff)};
};

// y = coeff * sum(x), sum(|x|), sum(x^2) or mean(x) over all axes from `axis` on. Output: the axes before it.
class Reduction : public LayerOf<ReductionOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Reduction"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  OutputRule output_rule(int) const override { return OutputRule::f32; }
};

}  // namespace cortado
