#include "cortado/base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cortado/base/error.h"

namespace cortado {

Shape::Shape(std::span<const int64_t> extents) {
  for (int64_t extent : extents) append(extent);
}

void Shape::append(int64_t extent) {
  if (rank_ == max_rank) throw UserError(fmt::format("a tensor has more than {} axes", max_rank));
  if (extent < 0) throw UserError(fmt::format("a tensor extent is negative: {}", extent));
  extents_[rank_++] = extent;
}

int64_t Shape::count(int begin, int end) const {
  int64_t product = 1;
  for (int axis = begin; axis < end; ++axis) {
    if (__builtin_mul_overflow(product, extents_[axis], &product)) {
      throw UserError(fmt::format("tensor {} has more elements than 64 bits count", text()));
    }
  }
  return product;
}

int Shape::canonical_axis(int axis) const {
  if (axis < -rank_ || axis >= rank_) {
    throw UserError(fmt::format("axis {} is outside a tensor of shape {}", axis, text()));
  }
  return axis < 0 ? axis + rank_ : axis;
}

std::string Shape::text() const {
  return rank_ == 0 ? "scalar" : fmt::format("{}", fmt::join(extents(), "x"));
}

Strides row_major_strides(const Shape& shape) {
  Strides strides;
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides.of[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

int memory_axis(int rank, int place) {
  if (place == 0 || rank <= 2) return place;
  return place == rank - 1 ? 1 : place + 1;
}

Strides channels_last_strides(const Shape& shape) {
  Strides strides;
  int64_t step = 1;
  for (int place = shape.rank() - 1; place >= 0; --place) {
    const int axis = memory_axis(shape.rank(), place);
    strides.of[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

}  // namespace cortado
