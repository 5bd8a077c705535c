#pragma once

#include "cortado/layers/layer_of.h"
#include "cortado/layers/window.h"

namespace cortado {

// Options of Convolution and Deconvolution.
struct ConvolutionOptions {
  int64_t num_output = 0;
  bool bias_term = true;
  int64_t group = 1;
  // One entry per spatial axis (D, H, W order), or one for all; empty: 1, 0 and 1. `kernel` is required.
  std::vector<int64_t> kernel, stride, pad, dilation;
  Filler weight_filler, bias_filler;
  int axis = 1;  // of the channels; only 1 is supported

  // The window of a tensor of rank `rank` (3: 1-D, 4: 2-D, 5: 3-D). Throws UserError.
  Window resolve(int rank) const;
  static constexpr auto fields =
      std::tuple{field("num_output", &ConvolutionOptions::num_output),
                 field("bias_term", &ConvolutionOptions::bias_term),
                 field("group", &ConvolutionOptions::group),
                 field("kernel", &ConvolutionOptions::kernel),
                 field("stride", &ConvolutionOptions::stride),
                 field("pad", &ConvolutionOptions::pad),
                 field("dilation", &ConvolutionOptions::dilation),
                 unkeyed_field("weight_filler", &ConvolutionOptions::weight_filler),
                 unkeyed_field("bias_filler", &ConvolutionOptions::bias_filler),
                 field("axis", &ConvolutionOptions::axis)};
};

// y[n,o,p] = b[o] + sum over c, k of w[o,c,k] * x[n, g*C/group + c, p*stride - pad + k*dilation], g the group
// of o; 1-D, 2-D and 3-D. x: N x C x space, y: N x num_output x windows. Parameters: weight num_output x
// C/group x kernel..., bias num_output.
class Convolution : public LayerOf<ConvolutionOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "Convolution"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                    const Box& input_box) const override;
  std::shared_ptr<const Layer> without_bias() const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  Products products() const override { return Products::convolution; }
  bool may_fuse_with(const Layer& next) const override;
};

// Checks that both convolutions share: one input and output, channels on axis 1, group divides C and
// num_output.
void check_convolution(const ConvolutionOptions& options, std::span<const Shape> inputs, int outputs);

// The input channels that output channels `outputs` of a grouped convolution read.
Range group_inputs(Range outputs, int64_t input_channels, int64_t output_channels, int64_t group);

// How many groups a part of the channels consists of, so that computing it is a convolution of so many
// groups: whole groups on both sides, or some outputs of one group and all its inputs. 0: neither.
int64_t groups_of_part(Range inputs, int64_t input_channels, Range outputs, int64_t output_channels,
                       int64_t group);

}  // namespace cortado
