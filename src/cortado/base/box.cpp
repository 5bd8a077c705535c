#include "cortado/base/box.h"

#include <fmt/format.h>

namespace cortado {

Box Box::whole(const Shape& shape) {
  Box box(shape.rank());
  for (int axis = 0; axis < shape.rank(); ++axis) box[axis] = {0, shape[axis]};
  return box;
}

Shape Box::shape() const {
  Shape shape;
  for (int axis = 0; axis < rank_; ++axis) shape.append(ranges_[axis].size());
  return shape;
}

bool Box::empty() const {
  for (int axis = 0; axis < rank_; ++axis) {
    if (ranges_[axis].size() == 0) return true;
  }
  return false;
}

bool Box::contains(const Box& other) const { return other.empty() || hull(other) == *this; }

Box Box::intersect(const Box& other) const {
  Box box(rank_);
  for (int axis = 0; axis < rank_; ++axis) {
    box[axis] = {std::max(ranges_[axis].begin, other[axis].begin),
                 std::min(ranges_[axis].end, other[axis].end)};
  }
  return box;
}

Box Box::hull(const Box& other) const {
  Box box(rank_);
  for (int axis = 0; axis < rank_; ++axis) {
    box[axis] = {std::min(ranges_[axis].begin, other[axis].begin),
                 std::max(ranges_[axis].end, other[axis].end)};
  }
  return box;
}

namespace {

// Offset of the first element of `part` in a row-major array of `box`.
int64_t offset_in(const Box& box, const Box& part) {
  const Strides strides = row_major_strides(box.shape());
  int64_t offset = 0;
  for (int axis = 0; axis < box.rank(); ++axis)
    offset += (part[axis].begin - box[axis].begin) * strides[axis];
  return offset;
}

// Copies `shape` elements between arrays of these strides, axes from `axis` on.
void copy_axes(const Shape& shape, int axis, const float* from, const Strides& from_strides, float* to,
               const Strides& to_strides) {
  if (axis >= shape.rank() - 1) {
    std::copy_n(from, shape.rank() == 0 ? 1 : shape[axis], to);
    return;
  }
  for (int64_t i = 0; i < shape[axis]; ++i)
    copy_axes(shape, axis + 1, from + i * from_strides[axis], from_strides, to + i * to_strides[axis],
              to_strides);
}

}  // namespace

void copy_common(const Box& from_box, const float* from, const Box& to_box, float* to) {
  const Box common = from_box.intersect(to_box);
  if (common.empty()) return;
  copy_axes(common.shape(), 0, from + offset_in(from_box, common), row_major_strides(from_box.shape()),
            to + offset_in(to_box, common), row_major_strides(to_box.shape()));
}

std::string Box::text() const {
  std::string text;
  for (int axis = 0; axis < rank_; ++axis) {
    text += fmt::format("{}[{},{})", axis == 0 ? "" : "x", ranges_[axis].begin, ranges_[axis].end);
  }
  return text;
}

}  // namespace cortado
