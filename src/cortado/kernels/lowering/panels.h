#pragma once

#include <cstdint>
#include <functional>

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/problem.h"

namespace cortado::lowering {

// The memory order of a convolution's weight, [group][window channel / tile_columns][tap][image channel]
// [panel_width]: the right operand of the forward product as it stands.
struct WeightPanels {
  explicit WeightPanels(const ConvolutionProblem& problem);
  WeightPanels(int64_t groups, int64_t columns, int64_t taps, int64_t depth, bool transposed);

  int64_t groups, columns, taps, depth;  // of a group: window channels, taps, image channels
  int64_t panels() const;                // of a group
  int64_t group_elements() const;
  int64_t elements() const { return groups * group_elements(); }

  bool transposed = false;

  // Canonical order: [group * columns][depth][taps]; [depth][taps][columns] when transposed.
  void from_canonical(const float* canonical, float* own) const;
  void to_canonical(const float* own, float* canonical) const;
  ParameterFormat format() const;

 private:
  template <typename Copy>
  void for_each_element(Copy&& copy) const;
};

// to[j * to_stride + i] = from[i * from_stride + j] for i in [0, rows), j in [0, columns).
void transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
               int64_t columns);

}  // namespace cortado::lowering
