#include "cortado/onnx/read/rearrange.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/broadcast.h"

namespace cortado::onnx {
namespace {

using Chosen = std::vector<ConstantPtr>;

ConstantPtr in_shape(const Constant& x, const Shape& shape) {
  if (shape.size() != x.size())
    throw UserError(fmt::format("it makes {} of {}", shape.text(), x.shape.text()));
  Constant result = x;
  result.shape = shape;
  return std::make_shared<Constant>(std::move(result));
}

// Elements by their positions: `source(position)` turns a position of the result into one of `x`.
template <typename Source>
ConstantPtr by_position(const Constant& x, const Shape& shape, Source source) {
  check_computed(shape, x.size());
  const Strides strides = row_major_strides(shape);
  std::vector<int64_t> sources;
  sources.reserve(static_cast<size_t>(shape.size()));
  std::array<int64_t, Shape::max_rank> position{};
  for (int64_t index = 0; index < shape.size(); ++index) {
    for (int axis = 0; axis < shape.rank(); ++axis)
      position[static_cast<size_t>(axis)] = index / strides[axis] % shape[axis];
    sources.push_back(source(position));
  }
  return rearranged(x, shape, sources);
}

Chosen choose_identity(const Node& node) {
  node.check_inputs(1, 1);
  return {node.input(0).constant};
}

Chosen choose_reshape(const Node& node) {
  node.check_inputs(2, 2);
  const Constant& x = node.constant(0);
  const bool zero_is_zero = node.attributes.integer("allowzero", 0) != 0;
  Shape shape;
  int open = -1;
  for (const int64_t extent : node.integers(1)) {
    const int axis = shape.rank();
    if (extent == -1) open = axis;
    if (extent == 0 && !zero_is_zero && axis >= x.shape.rank())
      throw UserError("it copies an axis that is not there");
    shape.append(extent == -1 ? 1 : extent == 0 && !zero_is_zero ? x.shape[axis] : extent);
  }
  if (open >= 0 && shape.size() > 0) shape.set(open, x.size() / shape.size());
  return {in_shape(x, shape)};
}

Chosen choose_flatten(const Node& node) {
  node.check_inputs(1, 1);
  const Constant& x = node.constant(0);
  const int64_t axis = node.attributes.integer("axis", 1);
  const int first = axis == x.shape.rank() ? x.shape.rank() : axis_of(axis, x.shape.rank());
  return {in_shape(x, {x.shape.count(0, first), x.shape.count(first)})};
}

Chosen choose_squeeze(const Node& node) {
  node.check_inputs(1, 2);
  const Constant& x = node.constant(0);
  std::vector<bool> dropped(static_cast<size_t>(x.shape.rank()), !node.has(1));
  if (node.has(1))
    for (const int64_t axis : node.integers(1))
      dropped[static_cast<size_t>(axis_of(axis, x.shape.rank()))] = true;
  Shape shape;
  for (int axis = 0; axis < x.shape.rank(); ++axis)
    if (!dropped[static_cast<size_t>(axis)] || x.shape[axis] != 1) shape.append(x.shape[axis]);
  return {in_shape(x, shape)};
}

Chosen choose_unsqueeze(const Node& node) {
  node.check_inputs(2, 2);
  const Constant& x = node.constant(0);
  const std::vector<int64_t> axes = node.integers(1);
  const int rank = x.shape.rank() + static_cast<int>(std::min<size_t>(axes.size(), Shape::max_rank));
  std::vector<bool> added(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) added[static_cast<size_t>(axis_of(axis, rank))] = true;
  if (std::ranges::count(added, true) + x.shape.rank() != rank) throw UserError("it adds an axis twice");
  Shape shape;
  for (int axis = 0, next = 0; axis < rank; ++axis)
    shape.append(added[static_cast<size_t>(axis)] ? 1 : x.shape[next++]);
  return {in_shape(x, shape)};
}

Chosen choose_transpose(const Node& node) {
  node.check_inputs(1, 1);
  const Constant& x = node.constant(0);
  const int rank = x.shape.rank();
  std::vector<int64_t> order;
  for (int axis = rank - 1; axis >= 0; --axis) order.push_back(axis);
  order = node.attributes.integers("perm").value_or(order);
  if (static_cast<int>(order.size()) != rank)
    throw UserError("perm is of another length than its input's shape");
  std::vector<bool> seen(order.size());
  Shape shape;
  for (const int64_t axis : order) {
    shape.append(x.shape[axis_of(axis, rank)]);
    seen[static_cast<size_t>(axis_of(axis, rank))] = true;
  }
  if (std::ranges::count(seen, false) > 0) throw UserError("perm names an axis twice; the file is broken");
  const Strides strides = row_major_strides(x.shape);
  return {by_position(x, shape, [&](const auto& position) {
    int64_t source = 0;
    for (size_t i = 0; i < order.size(); ++i) source += position[i] * strides[axis_of(order[i], rank)];
    return source;
  })};
}

Chosen choose_concat(const Node& node) {
  if (node.inputs() == 0) throw UserError("has no inputs; the file is broken");
  const Constant& first = node.constant(0);
  const int axis = axis_of(node.attributes.integer("axis", 0), first.shape.rank());
  Shape shape = first.shape;
  int64_t parts = first.size();
  for (int i = 1; i < node.inputs(); ++i) {
    const Constant& next = node.constant(i);
    Shape same = next.shape;
    if (next.whole != first.whole || same.rank() != shape.rank())
      throw UserError("its inputs do not fit each other");
    same.set(axis, first.shape[axis]);
    if (same != first.shape) throw UserError("its inputs do not fit each other");
    shape.set(axis, shape[axis] + next.shape[axis]);
    parts += next.size();
  }
  check_computed(shape, parts);
  Constant result{shape, first.whole, {}, {}};
  for (int64_t before = 0; before < shape.count(0, axis); ++before) {
    for (int i = 0; i < node.inputs(); ++i) {
      const Constant& part = node.constant(i);
      const int64_t each = part.shape.count(axis);
      const auto copy = [&](const auto& from, auto& to) {
        to.insert(to.end(), from.begin() + before * each, from.begin() + (before + 1) * each);
      };
      part.whole ? copy(part.integers, result.integers) : copy(part.floats, result.floats);
    }
  }
  return {std::make_shared<Constant>(std::move(result))};
}

Chosen choose_slice(const Node& node) {
  node.check_inputs(3, 5);
  const Constant& x = node.constant(0);
  const auto [starts, ends, axes, steps] = slice_ranges(node);
  std::vector<int64_t> first(static_cast<size_t>(x.shape.rank()), 0);
  std::vector<int64_t> step(first.size(), 1);
  Shape shape = x.shape;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int axis = axis_of(axes[i], x.shape.rank());
    const int64_t extent = x.shape[axis];
    constexpr int64_t most = 1 << 30;
    if (steps[i] == 0 || std::abs(std::max(steps[i], -most)) >= most)
      throw UserError("its step is out of range");
    const bool back = steps[i] < 0;
    const auto position = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + extent : at, back ? -1 : 0, back ? extent - 1 : extent);
    };
    const int64_t begin = position(starts[i]);
    const int64_t end = back && ends[i] < -extent ? -1 : position(ends[i]);
    const int64_t room = back ? begin - end : end - begin, stride = std::abs(steps[i]);
    first[static_cast<size_t>(axis)] = begin;
    step[static_cast<size_t>(axis)] = steps[i];
    shape.set(axis, std::max<int64_t>(0, (room + stride - 1) / stride));
  }
  const Strides strides = row_major_strides(x.shape);
  return {by_position(x, shape, [&](const auto& position) {
    int64_t source = 0;
    for (size_t i = 0; i < first.size(); ++i)
      source += (first[i] + position[i] * step[i]) * strides[static_cast<int>(i)];
    return source;
  })};
}

Chosen choose_gather(const Node& node) {
  node.check_inputs(2, 2);
  const Constant &x = node.constant(0), &indices = node.constant(1);
  const int axis = axis_of(node.attributes.integer("axis", 0), x.shape.rank());
  const std::vector<int64_t> taken = node.integers(1);
  for (const int64_t index : taken)
    if (index < -x.shape[axis] || index >= x.shape[axis])
      throw UserError(
          fmt::format("index {} is outside axis {} of a tensor of shape {}", index, axis, x.shape.text()));
  Shape shape;
  for (int a = 0; a < axis; ++a) shape.append(x.shape[a]);
  for (const int64_t extent : indices.shape.extents()) shape.append(extent);
  for (int a = axis + 1; a < x.shape.rank(); ++a) shape.append(x.shape[a]);
  check_computed(shape, x.size());
  const int64_t after = x.shape.count(axis + 1);
  std::vector<int64_t> sources;
  for (int64_t before = 0; before < x.shape.count(0, axis); ++before)
    for (const int64_t index : taken)
      for (int64_t i = 0; i < after; ++i)
        sources.push_back((before * x.shape[axis] + (index < 0 ? index + x.shape[axis] : index)) * after + i);
  return {rearranged(x, shape, sources)};
}

Chosen choose_expand(const Node& node) {
  node.check_inputs(2, 2);
  const std::vector<int64_t> wanted = node.integers(1);
  const Shape shape = broadcast_shape(node.constant(0).shape, Shape(std::span(wanted)));
  return {rearranged(node.constant(0), shape, broadcast_sources(node.constant(0).shape, shape))};
}

Chosen choose_tile(const Node& node) {
  node.check_inputs(2, 2);
  const Constant& x = node.constant(0);
  const std::vector<int64_t> repeats = node.integers(1);
  if (static_cast<int>(repeats.size()) != x.shape.rank()) throw UserError("has a wrong number of repeats");
  Shape shape;
  for (int axis = 0; axis < x.shape.rank(); ++axis)
    shape.append(x.shape[axis] * window_option("repeats", repeats[static_cast<size_t>(axis)], 0));
  const Strides strides = row_major_strides(x.shape);
  return {by_position(x, shape, [&](const auto& position) {
    int64_t source = 0;
    for (int axis = 0; axis < shape.rank(); ++axis)
      source += position[static_cast<size_t>(axis)] % x.shape[axis] * strides[axis];
    return source;
  })};
}

}  // namespace

void check_computed(const Shape& shape, int64_t parts) {
  check_extents(shape, std::max(most_computed, parts));
}

std::vector<int64_t> broadcast_sources(const Shape& part, const Shape& whole) {
  check_computed(whole, part.size());
  const Strides to = row_major_strides(whole), from = row_major_strides(part);
  const int missing = whole.rank() - part.rank();
  std::vector<int64_t> sources;
  sources.reserve(static_cast<size_t>(whole.size()));
  for (int64_t index = 0; index < whole.size(); ++index) {
    int64_t source = 0;
    for (int axis = 0; axis < part.rank(); ++axis)
      if (part[axis] != 1) source += index / to[axis + missing] % whole[axis + missing] * from[axis];
    sources.push_back(source);
  }
  return sources;
}

ConstantPtr rearranged(const Constant& x, const Shape& shape, const std::vector<int64_t>& sources) {
  Constant result{shape, x.whole, {}, {}};
  for (const int64_t source : sources) {
    if (x.whole) {
      result.integers.push_back(x.integers[static_cast<size_t>(source)]);
    } else {
      result.floats.push_back(x.floats[static_cast<size_t>(source)]);
    }
  }
  return std::make_shared<Constant>(std::move(result));
}

std::span<const RearrangeFunction> rearrange_functions() {
  static constexpr RearrangeFunction functions[] = {
      {"Identity", choose_identity}, {"Reshape", choose_reshape},     {"Flatten", choose_flatten},
      {"Squeeze", choose_squeeze},   {"Unsqueeze", choose_unsqueeze}, {"Transpose", choose_transpose},
      {"Concat", choose_concat},     {"Slice", choose_slice},         {"Gather", choose_gather},
      {"Expand", choose_expand},     {"Tile", choose_tile},
  };
  return functions;
}

}  // namespace cortado::onnx
