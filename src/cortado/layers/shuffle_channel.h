#pragma once

#include "cortado/layers/axes.h"
#include "cortado/layers/layer_of.h"

namespace cortado {

struct ShuffleChannelOptions {
  int group = 1;
  static constexpr auto fields = std::tuple{field("group", &ShuffleChannelOptions::group)};
};

// The channels, `group` equal runs of them, dealt out in turns: channel k of run i becomes k * group + i
// (Zhang et al. 2018, "ShuffleNet", section 3.1).
class ShuffleChannel : public LayerOf<ShuffleChannelOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "ShuffleChannel"; }

  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const override {
    return box_with_whole_axis(inputs[0], output_box, 1);
  }
  Cuts cuts(std::span<const Shape> inputs) const override { return cuts_outside(inputs[0].rank(), 1, 2); }
};

}  // namespace cortado
