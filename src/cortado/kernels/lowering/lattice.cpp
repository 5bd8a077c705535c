#include "cortado/kernels/lowering/lattice.h"

namespace cortado::lowering {

std::optional<Lattice::Pitch> Lattice::pitch() const {
  if (run != 1) return std::nullopt;
  Pitch pitch;
  int64_t below = 1;  // rows of the axes so far, the innermost first
  const auto goes_on = [&](int64_t rows, int64_t left, int64_t out) {
    if (rows == 1) return true;
    if (below == 1) pitch = {left, out};
    const bool fits = left == below * pitch.left && out == below * pitch.out;
    below *= rows;
    return fits;
  };
  for (int i = 2; i >= 0; --i) {
    const auto& [rows, step, offset, extent, left_stride, out_stride] = axis[i];
    const bool inside = offset.size() == 1 && offset[0] == 0 && (rows - 1) * step < extent;
    if (!inside || !goes_on(rows, step * left_stride, out_stride)) return std::nullopt;
  }
  const bool even = goes_on(batch, left_batch_stride, out_batch_stride) && pitch.left > 0 && pitch.out > 0;
  return even ? std::optional(pitch) : std::nullopt;
}

}  // namespace cortado::lowering
