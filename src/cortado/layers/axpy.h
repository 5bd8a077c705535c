#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

// y = a * x + b, a being one factor for each channel of each sample (Hu et al., "Squeeze-and-excitation
// networks", CVPR 2018: its variant of Caffe). Inputs: a of shape N x C (further axes of extent 1), x and b
// of one shape N x C x space.
class Axpy : public LayerOf<NoOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Axpy"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
};

}  // namespace cortado
