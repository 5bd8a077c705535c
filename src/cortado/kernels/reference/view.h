#pragma once

#include <array>

#include "cortado/base/box.h"

namespace cortado {

// A global index of an element, in spoken order.
using Index = std::array<int64_t, Shape::max_rank>;

// Calls work(index) for each index of the box, row-major in spoken order.
template <typename Work>
void for_each_index(const Box& box, Work&& work) {
  if (box.empty()) return;
  Index index{};
  for (int axis = 0; axis < box.rank(); ++axis) index[axis] = box[axis].begin;
  while (true) {
    work(static_cast<const Index&>(index));
    int axis = box.rank() - 1;
    while (axis >= 0 && ++index[axis] == box[axis].end) index[axis] = box[axis].begin, --axis;
    if (axis < 0) return;
  }
}

// Number of an element, row-major in spoken order of the tensor's axes from `first_axis` on.
inline int64_t spoken_number(const Shape& shape, const Index& index, int first_axis = 0) {
  int64_t number = 0;
  for (int axis = first_axis; axis < shape.rank(); ++axis) number = number * shape[axis] + index[axis];
  return number;
}

// Where the elements of a part of a tensor lie in memory, addressed by global indices.
class Place {
 public:
  Place(const Box& box, const Strides& strides) : box_(box), strides_(strides) {}

  const Box& box() const { return box_; }
  int64_t stride(int axis) const { return strides_[axis]; }
  int64_t size() const { return box_.shape().size(); }
  int64_t operator()(const Index& index) const {
    int64_t offset = 0;
    for (int axis = 0; axis < box_.rank(); ++axis)
      offset += (index[axis] - box_[axis].begin) * strides_[axis];
    return offset;
  }

 private:
  Box box_;
  Strides strides_;
};

// A part of an activation (channels last) or of a parameter (row-major), dense.
inline Place tensor_place(const Box& box) { return {box, channels_last_strides(box.shape())}; }
inline Place parameter_place(const Box& box) { return {box, row_major_strides(box.shape())}; }

}  // namespace cortado
