#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct TileOptions {
  int axis = 1;
  int tiles = 1;
  static constexpr auto fields =
      std::tuple{field("axis", &TileOptions::axis), field("tiles", &TileOptions::tiles)};
};

// `tiles` copies of the input one after the other along `axis`.
class Tile : public LayerOf<TileOptions> {
 public:
  explicit Tile(TileOptions options);
  std::string_view type() const override { return "Tile"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
};

}  // namespace cortado
