#pragma once

#include "cortado/layers/broadcast.h"
#include "cortado/layers/layer_of.h"

namespace cortado {

struct ScaleOptions {
  Broadcast broadcast;
  bool bias_term = false;
  Filler filler{.value = 1};
  Filler bias_filler;
  static constexpr auto fields =
      std::tuple{field("broadcast", &ScaleOptions::broadcast), field("bias_term", &ScaleOptions::bias_term),
                 unkeyed_field("filler", &ScaleOptions::filler),
                 unkeyed_field("bias_filler", &ScaleOptions::bias_filler)};
};

// y = x * scale (+ bias), scale broadcast over x. The scale is the second input, or with one input a
// parameter. Parameters: weight (one input only), bias (bias_term), both of the operand's shape.
class Scale : public LayerOf<ScaleOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "Scale"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                    const Box& input_box) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  std::string_view f32_parts() const override { return "factors, their gradients and histories"; }
  bool may_fuse_with(const Layer& next) const override;
};

}  // namespace cortado
