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

std::string Box::text() const {
  std::string text;
  for (int axis = 0; axis < rank_; ++axis) {
    text += fmt::format("{}[{},{})", axis == 0 ? "" : "x", ranges_[axis].begin, ranges_[axis].end);
  }
  return text;
}

}  // namespace cortado
