#pragma once

#include "cortado/layers/layer_of.h"
#include "cortado/layers/window.h"

namespace cortado {

struct Im2colOptions {
  // One entry per spatial axis (D, H, W order), or one for all; empty: 1, 0 and 1. `kernel` is required.
  std::vector<int64_t> kernel, stride, pad, dilation;
  int axis = 1;  // of the channels; only 1 is supported
  static constexpr auto fields =
      std::tuple{field("kernel", &Im2colOptions::kernel), field("stride", &Im2colOptions::stride),
                 field("pad", &Im2colOptions::pad), field("dilation", &Im2colOptions::dilation),
                 field("axis", &Im2colOptions::axis)};
};

// The elements that the windows of a convolution read, as channels: y[n, c*K + k, o] = x[n, c, o*stride - pad
// + k*dilation], 0 in the padding; k counts the K elements of a window, row by row. x: N x C x space, y: N x
// C*K x windows.
class Im2col : public LayerOf<Im2colOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Im2col"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }
  Flops forward_flops(std::span<const Shape>, std::span<const Shape>) const override { return {}; }
  // The window of a tensor of that rank. Throws UserError.
  Window window(int rank) const;
};

}  // namespace cortado
