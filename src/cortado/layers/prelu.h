#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct PReluOptions {
  bool channel_shared = false;
  Filler filler{.value = 0.25};
  static constexpr auto fields = std::tuple{field("channel_shared", &PReluOptions::channel_shared),
                                            unkeyed_field("filler", &PReluOptions::filler)};
};

// y = max(x, 0) + slope[c] * min(x, 0), c on axis 1. Parameter: slope C, or a scalar when channel_shared.
class PRelu : public LayerOf<PReluOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "PReLU"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                    const Box& input_box) const override;
  std::string_view f32_parts() const override { return "factors, their gradients and histories"; }
};

}  // namespace cortado
