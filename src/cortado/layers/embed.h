#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct EmbedOptions {
  int num_output = 0;
  int input_dim = 0;
  bool bias_term = true;
  Filler weight_filler, bias_filler;
  static constexpr auto fields =
      std::tuple{field("num_output", &EmbedOptions::num_output), field("input_dim", &EmbedOptions::input_dim),
                 field("bias_term", &EmbedOptions::bias_term),
                 unkeyed_field("weight_filler", &EmbedOptions::weight_filler),
                 unkeyed_field("bias_filler", &EmbedOptions::bias_filler)};
};

// y[..., :] = weight[x[...], :] + bias. Input: integers in [0, input_dim) of any shape; output: that shape
// followed by an axis of num_output. Parameters: weight (input_dim x num_output), bias (num_output).
class Embed : public LayerOf<EmbedOptions> {
 public:
  explicit Embed(EmbedOptions options);
  std::string_view type() const override { return "Embed"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                    const Box& input_box) const override;
  bool differentiable(int) const override { return false; }
  OutputRule output_rule(int) const override { return OutputRule::f32; }
};

}  // namespace cortado
