#pragma once

#include "cortado/layers/layer_of.h"
#include "cortado/layers/window.h"

namespace cortado {

struct PoolingOptions {
  enum class Method { max, average, stochastic };
  Method method = Method::max;
  // One entry per spatial axis (D, H, W order), or one for all; stride and pad empty: 1 and 0.
  std::vector<int64_t> kernel, stride, pad;
  bool global_pooling = false;       // the kernel is the whole image; excludes kernel, stride and pad
  Rounding rounding = Rounding::up;  // with padding on any axis, up_inside in place of up: Caffe's rule

  // The window on a tensor of shape `input`. Throws UserError.
  Window resolve(const Shape& input) const;
  static constexpr auto fields = std::tuple{field("method", &PoolingOptions::method),
                                            field("kernel", &PoolingOptions::kernel),
                                            field("stride", &PoolingOptions::stride),
                                            field("pad", &PoolingOptions::pad),
                                            field("global_pooling", &PoolingOptions::global_pooling),
                                            field("rounding", &PoolingOptions::rounding)};
};

// Pools each channel over windows clipped to the image; 1-D, 2-D and 3-D.
//   max         first maximum in spoken order; a second output, if any, holds its index within the
//               channel's image (spoken order, row-major), which has no gradient. Of a window outside the
//               image: the lowest float, index -1, no gradient
//   average     sum over the image's part of the window / size of the window clipped to the padded image,
//               which must not be 0
//   stochastic  (Zeiler and Fergus, 2013; inputs not negative, no padding) training: element drawn with
//               probability x / sum x; testing: sum x^2 / sum x
class Pooling : public LayerOf<PoolingOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "Pooling"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  OutputRule output_rule(int output) const override {
    return output == 0 ? OutputRule::as_inputs : OutputRule::f32;
  }
  std::string_view f32_parts() const override { return "indices"; }
};

}  // namespace cortado
