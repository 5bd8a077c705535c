#include "cortado/layers/tile.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

Tile::Tile(TileOptions options) : LayerOf(options) {
  if (options_.tiles < 1) throw UserError(fmt::format("tiles must be at least 1, is {}", options_.tiles));
}

std::vector<Shape> Tile::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("input", inputs.size(), 1, 1);
  check_count("output", outputs, 1, 1);
  Shape output = inputs[0];
  int axis = output.canonical_axis(options_.axis);
  output.set(axis, output[axis] * options_.tiles);
  return {output};
}

Box Tile::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  return box_with_whole_axis(inputs[0], output_box, options_.axis);
}

Cuts Tile::cuts(std::span<const Shape> inputs) const {
  int axis = inputs[0].canonical_axis(options_.axis);
  return cuts_outside(inputs[0].rank(), axis, axis + 1);
}

}  // namespace cortado
