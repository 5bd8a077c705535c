#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "cortado/base/error.h"
#include "cortado/onnx/read/broadcast.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

// The input seen in another shape of as many elements.
void give_view(Node& node, const Shape& shape) {
  Value value = node.activation(0);
  if (!value.pads.empty()) node.net().blob_of(value);  // refuses it
  if (shape.size() != value.shape.size())
    throw UserError(fmt::format("it makes {} of {}, which has another number of elements", shape.text(),
                                value.shape.text()));
  value.shape = shape;
  node.give(std::move(value));
}

void read_reshape(Node& node) {
  node.check_inputs(2, 2);
  const Shape from = node.activation(0).seen();
  const std::vector<int64_t> wanted = node.integers(1);
  const bool zero_is_zero = node.attributes.integer("allowzero", 0) != 0;
  Shape shape;
  int open = -1;
  for (const int64_t extent : wanted) {
    const int axis = shape.rank();
    if (extent == 0 && !zero_is_zero && axis >= from.rank())
      throw UserError(fmt::format("it copies axis {} of a tensor of shape {}", axis, from.text()));
    if (extent == -1 && open >= 0) throw UserError("two of its extents are -1; the file is broken");
    if (extent == -1) open = axis;
    shape.append(extent == -1 ? 1 : extent == 0 && !zero_is_zero ? from[axis] : extent);
  }
  if (open >= 0 && shape.size() > 0) shape.set(open, from.size() / shape.size());
  give_view(node, shape);
}

void read_flatten(Node& node) {
  node.check_inputs(1, 1);
  const Shape from = node.activation(0).seen();
  const int64_t axis = node.attributes.integer("axis", 1);
  const int first = axis == from.rank() ? from.rank() : axis_of(axis, from.rank());
  give_view(node, {from.count(0, first), from.count(first)});
}

void read_squeeze(Node& node) {
  node.check_inputs(1, 2);
  const Shape from = node.activation(0).seen();
  std::vector<bool> dropped(static_cast<size_t>(from.rank()), !node.has(1));
  if (node.has(1))
    for (const int64_t axis : node.integers(1))
      dropped[static_cast<size_t>(axis_of(axis, from.rank()))] = true;
  Shape shape;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const bool drop = dropped[static_cast<size_t>(axis)];
    if (drop && from[axis] != 1 && node.has(1))
      throw UserError(fmt::format("it drops axis {} of a tensor of shape {}", axis, from.text()));
    if (!drop || from[axis] != 1) shape.append(from[axis]);
  }
  give_view(node, shape);
}

void read_unsqueeze(Node& node) {
  node.check_inputs(2, 2);
  const Shape from = node.activation(0).seen();
  const std::vector<int64_t> axes = node.integers(1);
  const int rank = from.rank() + static_cast<int>(std::min<size_t>(axes.size(), Shape::max_rank));
  std::vector<bool> added(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) added[static_cast<size_t>(axis_of(axis, rank))] = true;
  if (std::ranges::count(added, true) + from.rank() != rank) throw UserError("it adds an axis twice");
  Shape shape;
  for (int axis = 0, next = 0; axis < rank; ++axis)
    shape.append(added[static_cast<size_t>(axis)] ? 1 : from[next++]);
  give_view(node, shape);
}

std::vector<int> checked_order(const Node& node, int rank) {
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.rbegin(), order.rend(), 0);
  const std::optional<std::vector<int64_t>> given = node.attributes.integers("perm");
  if (!given) return order;
  std::vector<bool> seen(static_cast<size_t>(rank));
  if (given->size() != order.size())
    throw UserError(fmt::format("perm has {} values for {} axes", given->size(), rank));
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = axis_of((*given)[i], rank);
    if (seen[static_cast<size_t>(order[i])]) throw UserError("perm names an axis twice; the file is broken");
    seen[static_cast<size_t>(order[i])] = true;
  }
  return order;
}

// Whether the axes that are longer than 1 stay in their order, so that the elements do.
bool keeps_elements(const std::vector<int>& order, const Shape& shape) {
  int last = -1;
  for (const int axis : order) {
    if (shape[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// Channels in two axes, exchanged: what ShuffleNet does (a ShuffleChannel layer).
bool exchanges_channels(const std::vector<int>& order) {
  if (order.size() < 3 || order[0] != 0 || order[1] != 2 || order[2] != 1) return false;
  for (size_t i = 3; i < order.size(); ++i)
    if (order[i] != static_cast<int>(i)) return false;
  return true;
}

Value shuffled(Node& node, Value value) {
  const Shape grouped = value.shape;
  Shape joined{grouped[0], grouped[1] * grouped[2]};
  Shape exchanged{grouped[0], grouped[2], grouped[1]};
  for (int axis = 3; axis < grouped.rank(); ++axis) {
    joined.append(grouped[axis]);
    exchanged.append(grouped[axis]);
  }
  value.shape = joined;
  caffe::LayerParameter layer = layer_of_type("ShuffleChannel");
  layer.mutable_shuffle_channel_param()->set_group(
      window_option("the number of channels' groups", grouped[1], 1));
  Value result = node.layer(std::move(layer), value);
  result.shape = exchanged;
  return result;
}

void read_transpose(Node& node) {
  node.check_inputs(1, 1);
  Value value = node.input(0);
  if (!value.pads.empty()) node.net().blob_of(value);  // refuses it
  const int rank = value.shape.rank();
  std::vector<int> order = checked_order(node, rank);
  if (!value.order.empty())
    for (int& axis : order) axis = value.order[static_cast<size_t>(axis)];
  value.order = order;
  if (keeps_elements(order, value.shape)) {
    value.shape = value.seen();
    value.order.clear();
  } else if (exchanges_channels(order) && value.shape[1] <= 1 << 16) {  // as many groups as a layer can have
    value.order.clear();
    value = shuffled(node, std::move(value));
    value.not_negative = node.input(0).not_negative;
  }
  node.give(std::move(value));
}

void read_identity(Node& node) {
  node.check_inputs(1, 1);
  node.give(node.input(0));
}

void read_cast(Node& node) {
  node.check_inputs(1, 1);
  const auto type = static_cast<int>(node.attributes.integer("to", TensorProto::UNDEFINED));
  if (type != TensorProto::FLOAT && type != TensorProto::DOUBLE)
    throw UserError(
        fmt::format("it casts a computed tensor to {}; layers compute in FLOAT", type_name(type)));
  node.give(node.activation(0));
}

void read_expand(Node& node) {
  node.check_inputs(2, 2);
  const Value& value = node.activation(0);
  const std::vector<int64_t> wanted = node.integers(1);
  const Shape shape = broadcast_shape(value.seen(), Shape(std::span(wanted)));
  node.give(tiled(node, value, shape, ""));
}

// The shape is known while the net is made: nothing is computed later.
void read_shape(Node& node) {
  node.check_inputs(1, 1);
  const Shape shape = node.input(0).seen();
  const int rank = shape.rank();
  const auto bound = [&](const std::string& name, int64_t otherwise) {
    const int64_t at = node.attributes.integer(name, otherwise);
    return static_cast<int>(std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank));
  };
  const int begin = bound("start", 0), end = std::max(begin, bound("end", rank));
  std::vector<int64_t> extents(shape.extents().begin() + begin, shape.extents().begin() + end);
  Value value;
  value.constant = constant_of(Shape{end - begin}, std::move(extents));
  node.give(std::move(value));
}

void read_size(Node& node) {
  node.check_inputs(1, 1);
  Value value;
  value.constant = constant_of(Shape{}, std::vector<int64_t>{node.input(0).seen().size()});
  node.give(std::move(value));
}

}  // namespace

std::span<const Operator> view_operators() {
  static constexpr Operator operators[] = {
      {"Reshape", read_reshape},
      {"Flatten", read_flatten},
      {"Squeeze", read_squeeze},
      {"Unsqueeze", read_unsqueeze},
      {"Transpose", read_transpose},
      {"Identity", read_identity},
      {"Cast", read_cast},
      {"Expand", read_expand},
      {"Shape", read_shape},
      {"Size", read_size},
      {"DepthToSpace", nullptr, "Caffe has no such layer; use ConvTranspose"},
      {"SpaceToDepth", nullptr, "Caffe has no such layer; use Conv with a stride"},
  };
  return operators;
}

}  // namespace cortado::onnx
