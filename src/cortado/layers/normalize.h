#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct NormalizeOptions {
  bool across_spatial = true;
  bool channel_shared = true;
  double eps = 1e-10;
  Filler filler{.value = 1};
  static constexpr auto fields =
      std::tuple{field("across_spatial", &NormalizeOptions::across_spatial),
                 field("channel_shared", &NormalizeOptions::channel_shared),
                 field("eps", &NormalizeOptions::eps), unkeyed_field("filler", &NormalizeOptions::filler)};
};

// y = scale[c] * x / sqrt(sum of x^2 + eps), the sum being over each sample or, without across_spatial, over
// the channels at each position (Liu et al., "ParseNet", 2015; SSD's variant of Caffe). Channels are axis 1.
// Parameter: scale C, or a scalar when channel_shared.
class Normalize : public LayerOf<NormalizeOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "Normalize"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  std::string_view f32_parts() const override { return "factors, their gradients and histories"; }
  // The first axis that a sum covers whole, and one past the last.
  Range summed_axes(int rank) const { return {1, options_.across_spatial ? rank : 2}; }
};

}  // namespace cortado
