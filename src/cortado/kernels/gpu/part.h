#pragma once

#include <array>

#include "cortado/base/box.h"
#include "cortado/kernels/gpu/divisor.h"
#include "cortado/kernels/gpu/elements.h"

namespace cortado::gpu {

// An element of a tensor by global indices, in the order of memory: n, d, h, w, c. Missing axes have index 0.
struct Point {
  int64_t n = 0, d = 0, h = 0, w = 0, c = 0;
};

// One axis of a part of a tensor.
struct PartAxis {
  int64_t begin = 0, size = 1;
  CORTADO_EVERYWHERE int64_t end() const { return begin + size; }
  CORTADO_EVERYWHERE bool holds(int64_t i) const { return i >= begin && i < begin + size; }
};

// A part of a tensor of at most five axes, dense and channels last.
struct Part {
  PartAxis n, d, h, w, c;

  CORTADO_EVERYWHERE int64_t elements() const { return n.size * d.size * h.size * w.size * c.size; }
  CORTADO_EVERYWHERE Point point(int64_t i) const {
    Point at;
    at.c = c.begin + divide(i, c.size);
    at.w = w.begin + divide(i, w.size);
    at.h = h.begin + divide(i, h.size);
    at.d = d.begin + divide(i, d.size);
    at.n = n.begin + i;
    return at;
  }
  CORTADO_EVERYWHERE int64_t offset(const Point& at) const {
    return ((((at.n - n.begin) * d.size + at.d - d.begin) * h.size + at.h - h.begin) * w.size + at.w -
            w.begin) *
               c.size +
           at.c - c.begin;
  }
  CORTADO_EVERYWHERE bool holds(const Point& at) const {
    return n.holds(at.n) && d.holds(at.d) && h.holds(at.h) && w.holds(at.w) && c.holds(at.c);
  }
};

// The elements of a part by their numbers, for kernels that ask for many.
class Points {
 public:
  Points() = default;
  explicit Points(const Part& part)
      : part_(part), c_(extent(part.c)), w_(extent(part.w)), h_(extent(part.h)), d_(extent(part.d)) {}
  CORTADO_EVERYWHERE Point operator()(int64_t i) const {
    Point at;
    at.c = part_.c.begin + c_.split(i);
    at.w = part_.w.begin + w_.split(i);
    at.h = part_.h.begin + h_.split(i);
    at.d = part_.d.begin + d_.split(i);
    at.n = part_.n.begin + i;
    return at;
  }

 private:
  static Divisor extent(const PartAxis& axis) { return Divisor(axis.size > 0 ? axis.size : 1); }
  Part part_;
  Divisor c_, w_, h_, d_;
};

inline constexpr int most_axes = 5;  // of a Part

// The axes of a tensor's memory with their extents, spatial ones last in (d, h, w).
inline Part part_of(const Box& box) {
  Part part;
  const auto axis = [&](int i) { return PartAxis{box[i].begin, box[i].size()}; };
  if (box.rank() > 0) part.n = axis(0);
  if (box.rank() > 1) part.c = axis(1);
  std::array<PartAxis*, 3> spatial{&part.d, &part.h, &part.w};
  for (int i = 2; i < box.rank(); ++i) *spatial[static_cast<size_t>(i + 3 - box.rank())] = axis(i);
  return part;
}

// Where the elements of a tensor lie, by their spoken (row-major) numbers.
struct SpokenOrder {
  int rank = 0;
  int64_t extent[Shape::max_rank] = {}, stride[Shape::max_rank] = {};

  explicit SpokenOrder(const Shape& shape) : rank(shape.rank()) {
    const Strides strides = channels_last_strides(shape);
    for (int axis = 0; axis < rank; ++axis) extent[axis] = shape[axis], stride[axis] = strides[axis];
  }
  CORTADO_EVERYWHERE int64_t offset(int64_t number) const {
    int64_t offset = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      offset += number % extent[axis] * stride[axis];
      number /= extent[axis];
    }
    return offset;
  }
};

}  // namespace cortado::gpu
