#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "cortado/base/shape.h"

namespace cortado {

// Half-open interval [begin, end) of indices along one axis.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return std::max<int64_t>(0, end - begin); }
  bool operator==(const Range&) const = default;
};

// Half-open hyper-rectangle of global tensor indices, one Range per axis in spoken order.
class Box {
 public:
  Box() = default;
  static Box whole(const Shape& shape);

  int rank() const { return rank_; }
  const Range& operator[](int axis) const { return ranges_[axis]; }
  Range& operator[](int axis) { return ranges_[axis]; }

  Shape shape() const;
  bool empty() const;
  bool contains(const Box& other) const;
  Box intersect(const Box& other) const;  // may be empty
  Box hull(const Box& other) const;       // smallest box containing both
  Box clip(const Shape& shape) const { return intersect(whole(shape)); }
  std::string text() const;  // "[0,8)x[0,64)x[3,10)"
  bool operator==(const Box&) const = default;

 private:
  explicit Box(int rank) : rank_(rank) {}
  int rank_ = 0;
  std::array<Range, Shape::max_rank> ranges_{};
};

// Copies the elements that both boxes hold; both arrays are row-major in their box.
void copy_common(const Box& from_box, const float* from, const Box& to_box, float* to);

}  // namespace cortado
