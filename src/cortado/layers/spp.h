#pragma once

#include "cortado/layers/layer_of.h"
#include "cortado/layers/window.h"

namespace cortado {

struct SppOptions {
  enum class Method { max, average };
  int64_t pyramid_height = 1;
  Method method = Method::max;
  static constexpr auto fields =
      std::tuple{field("pyramid_height", &SppOptions::pyramid_height), field("method", &SppOptions::method)};
};

// Spatial pyramid pooling (He et al., ECCV 2014): level l = 0, 1, ... pools each channel into 2^l windows
// along every spatial axis. Input: N x C x space. Output: N x K, the levels one after the other, each as
// channels x windows. A window has ceil(extent / 2^l) positions; what the windows are longer than the axis is
// padding, half of it (rounded up) before the image. Padding counts in averages.
class Spp : public LayerOf<SppOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "SPP"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::sample(); }
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  // The windows of a level of images of that shape: stride and kernel are equal. Throws UserError when a
  // window would lie in padding alone.
  Window window(const Shape& input, int64_t level) const;
};

}  // namespace cortado
