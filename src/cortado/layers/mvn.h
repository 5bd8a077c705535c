#pragma once

#include "cortado/layers/layer.h"

namespace cortado {

struct MvnOptions {
  bool normalize_variance = true;
  bool across_channels = false;
  double eps = 1e-9;
  bool operator==(const MvnOptions&) const = default;
};

// Mean-variance normalization of each sample's channel (or of each sample, across_channels):
// y = x - mean, and with normalize_variance y = (x - mean) / (sqrt(mean of (x - mean)^2) + eps). The gradient
// is Caffe's, which is the derivative for a small eps alone.
class Mvn : public Layer {
 public:
  explicit Mvn(MvnOptions options) : options_(options) {}
  const MvnOptions& options() const { return options_; }

  std::string_view type() const override { return "MVN"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;

 private:
  MvnOptions options_;
};

}  // namespace cortado
