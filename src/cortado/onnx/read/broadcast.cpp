#include "cortado/onnx/read/broadcast.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado::onnx {
namespace {

// The shape with axes of extent 1 in front, up to `rank`.
Shape with_leading_ones(const Shape& shape, int rank) {
  Shape result;
  for (int axis = shape.rank(); axis < rank; ++axis) result.append(1);
  for (int64_t extent : shape.extents()) result.append(extent);
  return result;
}

}  // namespace

Shape broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  const Shape x = with_leading_ones(a, rank), y = with_leading_ones(b, rank);
  Shape result;
  for (int axis = 0; axis < rank; ++axis) {
    if (x[axis] != y[axis] && x[axis] != 1 && y[axis] != 1)
      throw UserError(
          fmt::format("its inputs of shapes {} and {} do not fit each other", a.text(), b.text()));
    result.append(x[axis] == 1 ? y[axis] : x[axis]);
  }
  return result;
}

bool broadcasts_into(const Shape& part, const Shape& whole) {
  return part.rank() <= whole.rank() && broadcast_shape(part, whole) == whole;
}

std::optional<AxisRange> axes_of_part(const Shape& part, const Shape& whole) {
  const Shape padded = with_leading_ones(part, whole.rank());
  const bool has_samples = part.rank() == whole.rank() && whole.rank() > 0 && part[0] == whole[0];
  AxisRange range{whole.rank(), 0};
  for (int axis = 0; axis < whole.rank(); ++axis) {
    if (padded[axis] == 1 && !(axis == 0 && has_samples)) continue;
    range.begin = std::min(range.begin, axis);
    range.end = axis + 1;
  }
  if (range.begin >= range.end) range = {0, 0};
  for (int axis = range.begin; axis < range.end; ++axis)
    if (padded[axis] != whole[axis]) return std::nullopt;
  return range;
}

BroadcastOperand operand_of(const Constant& constant, const Shape& whole) {
  if (!broadcasts_into(constant.shape, whole))
    throw UserError(fmt::format("its constant of shape {} would enlarge a tensor of shape {}",
                                constant.shape.text(), whole.text()));
  if (constant.whole) throw UserError("its constant is of integers; only float tensors are computed");
  const Shape padded = with_leading_ones(constant.shape, whole.rank());
  int begin = whole.rank(), end = 0;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    if (padded[axis] == 1) continue;
    begin = std::min(begin, axis);
    end = axis + 1;
  }
  const Shape shape(whole.extents().subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  const int64_t most = std::max(most_computed, constant.size());
  if (shape.size() > most) throw UserError("its constant would be repeated too often");
  BroadcastOperand operand{begin, {shape, std::vector<float>(static_cast<size_t>(shape.size()))}};
  const Strides strides = row_major_strides(shape), from = row_major_strides(padded);
  for (int64_t index = 0; index < shape.size(); ++index) {
    int64_t source = 0;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (padded[begin + axis] != 1) source += index / strides[axis] % shape[axis] * from[begin + axis];
    operand.blob.values[static_cast<size_t>(index)] = constant.floats[static_cast<size_t>(source)];
  }
  return operand;
}

Value tiled(Node& node, const Value& value, const Shape& shape, const std::string& part) {
  Value wide = value;
  if (wide.pads.empty()) wide.shape = with_leading_ones(wide.shape, shape.rank());
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (wide.seen()[axis] == shape[axis]) continue;
    caffe::LayerParameter layer = layer_of_type("Tile");
    layer.mutable_tile_param()->set_axis(axis);
    layer.mutable_tile_param()->set_tiles(static_cast<int>(window_option("repetitions", shape[axis], 0)));
    wide = node.layer(std::move(layer), wide, {}, part);
  }
  return wide;
}

}  // namespace cortado::onnx
