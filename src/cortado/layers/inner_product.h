#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct InnerProductOptions {
  int64_t num_output = 0;
  bool bias_term = true;
  bool transpose = false;  // the weight is stored K x num_output
  int axis = 1;            // this axis and all after it are summed over
  Filler weight_filler, bias_filler;
  static constexpr auto fields =
      std::tuple{field("num_output", &InnerProductOptions::num_output),
                 field("bias_term", &InnerProductOptions::bias_term),
                 field("transpose", &InnerProductOptions::transpose),
                 field("axis", &InnerProductOptions::axis),
                 unkeyed_field("weight_filler", &InnerProductOptions::weight_filler),
                 unkeyed_field("bias_filler", &InnerProductOptions::bias_filler)};
};

// y[..., o] = b[o] + sum over k of w[o,k] * x[..., k], k running over the summed axes in spoken order.
// Parameters: weight num_output x K (K x num_output when transposed), bias num_output.
class InnerProduct : public LayerOf<InnerProductOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "InnerProduct"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                    const Box& input_box) const override;
  std::shared_ptr<const Layer> without_bias() const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  Products products() const override { return Products::inner_product; }
  bool may_fuse_with(const Layer& next) const override;
};

}  // namespace cortado
