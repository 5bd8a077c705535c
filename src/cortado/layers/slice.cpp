#include "cortado/layers/slice.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> Slice::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("input", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, -1);
  int axis = inputs[0].canonical_axis(options_.axis);
  int64_t extent = inputs[0][axis];
  std::vector<int64_t> ends = options_.slice_points;
  if (ends.empty()) {
    if (extent % outputs != 0) {
      throw UserError(fmt::format("cannot slice axis {} of {} into {} equal parts: give slice_point", axis,
                                  inputs[0].text(), outputs));
    }
    for (int i = 1; i < outputs; ++i) ends.push_back(extent / outputs * i);
  }
  if (static_cast<int>(ends.size()) != outputs - 1) {
    throw UserError(
        fmt::format("{} outputs need {} slice points, has {}", outputs, outputs - 1, ends.size()));
  }
  ends.push_back(extent);
  std::vector<Shape> shapes;
  int64_t begin = 0;
  for (int64_t end : ends) {
    if (end <= begin) {
      throw UserError(
          fmt::format("slice points must rise between 0 and the extent {} of axis {}: {} follows {}", extent,
                      axis, end, begin));
    }
    Shape shape = inputs[0];
    shape.set(axis, end - begin);
    shapes.push_back(shape);
    begin = end;
  }
  return shapes;
}

Box Slice::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  return box_with_whole_axis(inputs[0], output_box, options_.axis);
}

Cuts Slice::cuts(std::span<const Shape> inputs) const {
  int axis = inputs[0].canonical_axis(options_.axis);
  return cuts_outside(inputs[0].rank(), axis, axis + 1);
}

}  // namespace cortado
