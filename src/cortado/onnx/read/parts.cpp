#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

void read_concat(Node& node) {
  std::vector<Value> values = node.activations();
  if (values.empty()) throw UserError("has no inputs; the file is broken");
  const int axis = axis_of(node.attributes.integer("axis", 0), values[0].seen().rank());
  if (values.size() == 1) return node.give(values[0]);
  caffe::LayerParameter layer = layer_of_type("Concat");
  if (axis != 1) layer.mutable_concat_param()->set_axis(axis);
  Value output = node.layers(std::move(layer), values)[0];
  output.not_negative = std::ranges::all_of(values, [](const Value& value) { return value.not_negative; });
  node.give(std::move(output));
}

// The parts of a value between `points` along an axis. Those that `wanted` denies go into a Silence layer, so
// that they are no outputs of the net.
std::vector<Value> sliced(Node& node, const Value& value, int axis, const std::vector<int64_t>& points,
                          const std::vector<bool>& wanted, const std::string& part) {
  caffe::LayerParameter layer = layer_of_type("Slice");
  if (axis != 1) layer.mutable_slice_param()->set_axis(axis);
  for (const int64_t point : points)
    layer.mutable_slice_param()->add_slice_point(static_cast<uint32_t>(point));
  std::vector<Value> parts =
      node.layers(std::move(layer), {value}, static_cast<int>(points.size()) + 1, part);
  std::vector<Value> unread;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].not_negative = value.not_negative;
    if (!wanted[i]) unread.push_back(parts[i]);
  }
  if (!unread.empty()) node.layers(layer_of_type("Silence"), unread, 0, part + "/rest");
  return parts;
}

// The positions [begin, end) of an axis.
Value range_of(Node& node, const Value& value, int axis, int64_t begin, int64_t end,
               const std::string& part) {
  const int64_t extent = value.seen()[axis];
  if (begin == 0 && end == extent) return value;
  if (begin >= end) throw UserError(fmt::format("it takes nothing of axis {}", axis));
  if (extent > UINT32_MAX) throw UserError(fmt::format("axis {} has {} positions", axis, extent));
  std::vector<int64_t> points;
  std::vector<bool> wanted;
  if (begin > 0) {
    points.push_back(begin);
    wanted.push_back(false);
  }
  const size_t index = wanted.size();
  wanted.push_back(true);
  if (end < extent) {
    points.push_back(end);
    wanted.push_back(false);
  }
  return sliced(node, value, axis, points, wanted, part)[index];
}

void read_split(Node& node) {
  node.check_inputs(1, 2);
  const Value& value = node.activation(0);
  const Shape shape = value.seen();
  const int axis = axis_of(node.attributes.integer("axis", 0), shape.rank());
  const int64_t count = node.outputs(), asked = node.attributes.integer("num_outputs", count);
  if (count < 1 || asked != count)
    throw UserError(fmt::format("has {} outputs and num_outputs {}; the file is broken", count, asked));
  std::vector<int64_t> sizes;
  if (node.has(1)) {
    sizes = node.integers(1);
  } else {
    const int64_t each = (shape[axis] + count - 1) / count;
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(std::min(each, shape[axis] - std::min(i * each, shape[axis])));
  }
  int64_t at = 0;
  std::vector<int64_t> points;
  for (const int64_t size : sizes) {
    if (size < 1 || size > shape[axis] - at)
      throw UserError(
          fmt::format("its parts do not fit axis {} of a tensor of shape {}", axis, shape.text()));
    at += size;
    points.push_back(at);
  }
  if (at != shape[axis] || static_cast<int64_t>(sizes.size()) != count || at > UINT32_MAX)
    throw UserError(fmt::format("its parts do not fit axis {} of a tensor of shape {}", axis, shape.text()));
  if (count == 1) return node.give(value);
  points.pop_back();
  std::vector<bool> wanted;
  for (int i = 0; i < count; ++i) wanted.push_back(node.reads_output(i));
  std::vector<Value> parts = sliced(node, value, axis, points, wanted, "");
  for (int i = 0; i < count; ++i) node.give(std::move(parts[static_cast<size_t>(i)]), i);
}

void read_slice(Node& node) {
  node.check_inputs(3, 5);
  Value value = node.activation(0);
  const int rank = value.seen().rank();
  const auto [starts, ends, axes, steps] = slice_ranges(node);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int axis = axis_of(axes[i], rank);
    const int64_t extent = value.seen()[axis];
    if (steps[i] != 1)
      throw UserError(
          fmt::format("its step along axis {} is {}; Slice layers take what lies together", axis, steps[i]));
    const auto position = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
    };
    value = range_of(node, value, axis, position(starts[i]), position(ends[i]), "");
  }
  node.give(std::move(value));
}

// One index of an axis.
void read_gather(Node& node) {
  node.check_inputs(2, 2);
  const Value& value = node.activation(0);
  const Shape shape = value.seen();
  const int axis = axis_of(node.attributes.integer("axis", 0), shape.rank());
  const std::vector<int64_t> indices = node.integers(1);
  if (indices.size() != 1)
    throw UserError(
        fmt::format("it gathers {} positions of a computed tensor; Slice layers take one, or what "
                    "lies together",
                    indices.size()));
  const int64_t index = indices[0] < 0 ? indices[0] + shape[axis] : indices[0];
  if (index < 0 || index >= shape[axis])
    throw UserError(
        fmt::format("index {} is outside axis {} of a tensor of shape {}", indices[0], axis, shape.text()));
  Value part = range_of(node, value, axis, index, index + 1, "");
  Shape squeezed;
  for (int a = 0; a < shape.rank(); ++a) {
    if (a == axis) {
      for (int i = 0; i < node.constant(1).shape.rank(); ++i) squeezed.append(1);
    } else {
      squeezed.append(shape[a]);
    }
  }
  if (!part.pads.empty()) node.net().blob_of(part);  // refuses it
  part.shape = squeezed;
  node.give(std::move(part));
}

void read_tile(Node& node) {
  node.check_inputs(2, 2);
  Value value = node.activation(0);
  const std::vector<int64_t> repeats = node.integers(1);
  if (static_cast<int>(repeats.size()) != value.seen().rank())
    throw UserError(
        fmt::format("has {} repeats for a tensor of shape {}", repeats.size(), value.seen().text()));
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] == 1) continue;
    caffe::LayerParameter layer = layer_of_type("Tile");
    layer.mutable_tile_param()->set_axis(static_cast<int>(i));
    layer.mutable_tile_param()->set_tiles(static_cast<int>(window_option("repeats", repeats[i], 1)));
    value = node.layer(std::move(layer), value);
  }
  node.give(std::move(value));
}

}  // namespace

std::span<const Operator> part_operators() {
  static constexpr Operator operators[] = {
      {"Concat", read_concat},
      {"Split", read_split},
      {"Slice", read_slice},
      {"Gather", read_gather},
      {"Tile", read_tile},
      {"GatherND", nullptr, "the shape of its output depends on values"},
      {"GatherElements", nullptr, "its positions are values of the graph"},
      {"ScatterND", nullptr, "its positions are values of the graph"},
      {"ScatterElements", nullptr, "its positions are values of the graph"},
      {"Where", nullptr, "Caffe has no such layer"},
      {"OneHot", nullptr, "Caffe has no such layer"},
      {"TopK", nullptr, "end the graph before it: applying the net ranks scores"},
      {"ArgMax", nullptr, "end the graph before it; 'cortado classify' names the best class"},
      {"ArgMin", nullptr, "end the graph before it"},
      {"NonZero", nullptr, "the shape of its output depends on values"},
      {"NonMaxSuppression", nullptr, "end the graph before it; the shape of its output depends on values"},
      {"CumSum", nullptr, "Caffe has no such layer"},
  };
  return operators;
}

}  // namespace cortado::onnx
