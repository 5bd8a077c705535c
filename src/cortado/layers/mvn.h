#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct MvnOptions {
  bool normalize_variance = true;
  bool across_channels = false;
  double eps = 1e-9;
  static constexpr auto fields =
      std::tuple{field("normalize_variance", &MvnOptions::normalize_variance),
                 field("across_channels", &MvnOptions::across_channels), field("eps", &MvnOptions::eps)};
};

// Mean-variance normalization of each sample's channel (or of each sample, across_channels):
// y = x - mean, and with normalize_variance y = (x - mean) / (sqrt(mean of (x - mean)^2) + eps). The gradient
// is Caffe's, which is the derivative for a small eps alone.
class Mvn : public LayerOf<MvnOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "MVN"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  std::string_view f32_parts() const override { return "statistics"; }
};

}  // namespace cortado
