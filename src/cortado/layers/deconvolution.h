#pragma once

#include "cortado/layers/convolution.h"

namespace cortado {

// Transposed convolution: y[n,o,q] = b[o] + sum over c, p, k with q = p*stride - pad + k*dilation of
// w[c,o',k] * x[n,c,p], where o' counts within the group of o and c; 1-D, 2-D and 3-D.
// x: N x C x windows, y: N x num_output x space with space = stride*(windows-1) + extent - 2*pad.
// Parameters: weight C x num_output/group x kernel..., bias num_output.
class Deconvolution : public LayerOf<ConvolutionOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "Deconvolution"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                    const Box& input_box) const override;
  std::shared_ptr<const Layer> without_bias() const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  Products products() const override { return Products::convolution; }
};

// The options of a Convolution or Deconvolution; null: the layer is neither.
const ConvolutionOptions* convolution_options(const Layer& layer);

}  // namespace cortado
