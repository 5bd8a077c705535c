#pragma once

#include <algorithm>
#include <optional>

#include "cortado/base/shape.h"
#include "cortado/kernels/labels.h"
#include "cortado/kernels/native/simd.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado::native {

// Whether the elements along `axis` lie one after the other in memory: the channels, or the last axis of a
// tensor of at most two.
inline bool contiguous_axis(const Shape& shape, int axis) {
  return shape.canonical_axis(axis) == (shape.rank() > 2 ? 1 : shape.rank() - 1);
}

template <typename E>
inline float row_maximum(const E* row, int64_t count) {
  const float first = load<float>(row);
  EachWidth most{splat<floats>(first), splat<half_floats>(first), first};
  by_lanes(0, count, [&]<typename V>(int64_t i) { most.of<V>() = maximum(most.of<V>(), load<V>(row + i)); });
  for (int lane = 0; lane < lanes; ++lane) most.one = maximum(most.one, most.all[lane]);
  for (int lane = 0; lane < half_lanes; ++lane) most.one = maximum(most.one, most.half[lane]);
  return most.one;
}

// Sum of term.template operator()<V>(i) for i in [0, count), which may also store.
template <typename Term>
inline float row_sum(int64_t count, Term&& term) {
  EachWidth sum;
  by_lanes(0, count, [&]<typename V>(int64_t i) { sum.of<V>() += term.template operator()<V>(i); });
  return sum.sum();
}

// Writes the class of each row of scores whose classes are contiguous, -1 where its label does not count
// here; returns the number of rows whose label does. Rows in memory order are positions in spoken order.
inline int64_t read_classes(const Shape& shape, const float* labels, int64_t rows,
                            const LabelClasses& classes, int32_t* result) {
  reference::Spoken<const float> spoken(shape, labels);
  int64_t valid = 0;
  for (int64_t row = 0; row < rows; ++row) {
    std::optional<int64_t> label = classes.of_label(spoken[row]);
    result[row] = static_cast<int32_t>(label.value_or(-1));
    if (label) ++valid;
  }
  return valid;
}

}  // namespace cortado::native
