#pragma once

#include <cstdint>

#include "cortado/kernels/lowering/panels.h"

namespace cortado::winograd {

// Filters transformed for F: right operands, one per element of G g G^T, each in panels
// [columns / tile_columns][depth][panel_width].
template <typename F>
struct FilterPanels {
  int64_t depth = 0, columns = 0;
  int64_t width(int64_t panel) const;     // of a row
  int64_t first_of(int64_t panel) const;  // the place of its first element
  int64_t element_stride() const;
  int64_t elements() const;  // floats in all

  static FilterPanels forward(const lowering::WeightPanels& weight) { return {weight.depth, weight.columns}; }
  static FilterPanels backward(const lowering::WeightPanels& weight) {
    return {weight.columns, weight.depth};
  }

  // Even chunks of the columns, of whole panels, that are made one after the other, so as not to take much
  // memory: those of 512 to 512 channels by F(4x4, 3x3) are 38 MB.
  int64_t chunks() const;
  FilterPanels chunk() const { return {depth, columns / chunks()}; }

  // Transform these columns of a weight, from `first` on: as it is, and turned by 180 degrees with its
  // channels exchanged.
  void transform(const lowering::WeightPanels& panels, const float* weight, int64_t first, float* to) const;
  void transform_turned(const lowering::WeightPanels& panels, const float* weight, int64_t first,
                        float* to) const;

  // gradient = G^T m G, in the panels of the weight. `sums` are like transformed filters, in these panels,
  // of `depth` rows (at least the weight's).
  void finish(const lowering::WeightPanels& panels, const float* sums, float* gradient) const;
};

}  // namespace cortado::winograd
