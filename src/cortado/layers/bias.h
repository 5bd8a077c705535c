#pragma once

#include "cortado/layers/broadcast.h"
#include "cortado/layers/layer_of.h"

namespace cortado {

struct BiasOptions {
  Broadcast broadcast;
  Filler filler;
  static constexpr auto fields =
      std::tuple{field("broadcast", &BiasOptions::broadcast), unkeyed_field("filler", &BiasOptions::filler)};
};

// y = x + bias, bias broadcast over x. The bias is the second input, or with one input a parameter.
class Bias : public LayerOf<BiasOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "Bias"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                    const Box& input_box) const override;
  std::string_view f32_parts() const override { return "factors, their gradients and histories"; }
};

}  // namespace cortado
