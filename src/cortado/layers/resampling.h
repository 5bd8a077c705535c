#pragma once

#include <variant>
#include <vector>

#include "cortado/layers/layer_of.h"

namespace cortado {

// Options of layers that scale images, with the type of their layer.
//
// Upsample: `scale` times as many positions along every spatial axis. Nearest: each is repeated. Linear:
// position o of the output lies at (o + 1/2) / scale - 1/2 of the input, as where the edges of both images
// meet (PyTorch: align_corners=False).
struct UpsampleOptions {
  static constexpr std::string_view type = "Upsample";
  enum class Mode { nearest, linear };
  int64_t scale = 2;
  Mode mode = Mode::nearest;
  static constexpr auto fields =
      std::tuple{field("scale", &UpsampleOptions::scale), field("mode", &UpsampleOptions::mode)};
};
// Interp (Chen et al., "DeepLab", 2016: its variant of Caffe): linear, the first and last positions of both
// images meeting. The input loses -pad_begin and -pad_end positions at the ends of every spatial axis. From
// what is left, `n`, the output's extent follows: (n - 1) / shrink_factor + 1, rounded down, of which it has
// (n - 1) * zoom_factor + 1; or `height` and `width`; or, with two inputs, the second one's extents.
struct InterpOptions {
  static constexpr std::string_view type = "Interp";
  int64_t height = 0, width = 0;               // 0: not given
  int64_t zoom_factor = 0, shrink_factor = 0;  // 0: not given
  int64_t pad_begin = 0, pad_end = 0;          // at most 0
  static constexpr auto fields = std::tuple{field("height", &InterpOptions::height),
                                            field("width", &InterpOptions::width),
                                            field("zoom_factor", &InterpOptions::zoom_factor),
                                            field("shrink_factor", &InterpOptions::shrink_factor),
                                            field("pad_begin", &InterpOptions::pad_begin),
                                            field("pad_end", &InterpOptions::pad_end)};
};

// Two neighbours of the input and how much the second counts: the value is x[first] * (1 - weight) +
// x[first + 1] * weight. With weight 0 the second need not exist.
struct Neighbours {
  int64_t first = 0;
  double weight = 0;
  int64_t end() const { return first + (weight > 0 ? 2 : 1); }
};

// How one axis is resampled: position o of the output lies at max(0, (o * step + offset) / divisor) of the
// input's positions from `begin` on, which are `extent` many; `nearest`: at its whole part.
struct AxisResampling {
  int64_t outputs = 1;
  int64_t step = 1, offset = 0, divisor = 1;
  int64_t begin = 0, extent = 1;
  bool nearest = false;
  Neighbours neighbours(int64_t output) const;
};

// Each axis from axis 2 on is resampled by itself. Inputs: N x C x space; for Interp also one whose extents
// alone count. Output: N x C x resampled space.
class Resampling : public LayerOf<std::variant<UpsampleOptions, InterpOptions>> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override;
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  bool differentiable(int input) const override { return input == 0; }
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  // Of the axes 2, 3, ... of input 0. Throws UserError.
  std::vector<AxisResampling> axes(std::span<const Shape> inputs) const;
};

}  // namespace cortado
