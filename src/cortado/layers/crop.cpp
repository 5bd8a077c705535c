#include "cortado/layers/crop.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

Crop::Crop(CropOptions options) : LayerOf(std::move(options)) {
  for (int64_t offset : options_.offset) {
    if (offset < 0) throw UserError(fmt::format("offset must not be negative, is {}", offset));
  }
}

std::vector<int64_t> Crop::offsets(const Shape& input) const {
  int first = input.canonical_axis(options_.axis);
  int given = static_cast<int>(options_.offset.size());
  if (given > 1 && given != input.rank() - first) {
    throw UserError(fmt::format("needs one offset, or one for each of the {} axes from axis {} on, has {}",
                                input.rank() - first, first, given));
  }
  std::vector<int64_t> offsets(input.rank(), 0);
  for (int axis = first; axis < input.rank() && given > 0; ++axis) {
    offsets[axis] = options_.offset[given == 1 ? 0 : axis - first];
  }
  return offsets;
}

std::vector<Shape> Crop::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 2);
  check_count("output", outputs, 1, 1);
  if (inputs[1].rank() < inputs[0].rank()) {
    throw UserError(
        fmt::format("the reference {} has fewer axes than the input {}", inputs[1].text(), inputs[0].text()));
  }
  std::vector<int64_t> offset = offsets(inputs[0]);
  Shape output = inputs[0];
  for (int axis = inputs[0].canonical_axis(options_.axis); axis < output.rank(); ++axis) {
    output.set(axis, inputs[1][axis]);
    if (offset[axis] + output[axis] > inputs[0][axis]) {
      throw UserError(fmt::format("axis {}: offset {} and extent {} exceed the input {}", axis, offset[axis],
                                  output[axis], inputs[0].text()));
    }
  }
  return {output};
}

// Only the shape of the reference matters, so no part of it is read.
Box Crop::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  if (input == 1) return Box::whole(Shape(std::vector<int64_t>(inputs[1].rank(), 0)));
  std::vector<int64_t> offset = offsets(inputs[0]);
  Box box = output_box;
  for (int axis = 0; axis < box.rank(); ++axis) {
    box[axis] = {output_box[axis].begin + offset[axis], output_box[axis].end + offset[axis]};
  }
  return box;
}

Cuts Crop::cuts(std::span<const Shape> inputs) const { return cuts_outside(inputs[0].rank(), 0, 0); }

}  // namespace cortado
