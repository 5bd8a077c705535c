#include "cortado/kernels/lowering/channels.h"

#include <algorithm>

#include "cortado/base/parallel_for.h"

namespace cortado::lowering {

void mask_gradient(const float* rectified, float slope, int64_t count, float* gradient) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) gradient[i] *= rectified[i] > 0 ? 1.0f : slope;
  });
}

void mask_gradient(const bf16* rectified, float slope, int64_t count, bf16* gradient) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (!(to_float(rectified[i]) > 0)) gradient[i] = to_bf16(slope * to_float(gradient[i]));
  });
}

void sum_rows(const float* values, int64_t rows, int64_t channels, float* sums) {
  parallel_ranges(channels, [&](int64_t begin, int64_t end) {
    std::fill(sums + begin, sums + end, 0.0f);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t c = begin; c < end; ++c) sums[c] += values[row * channels + c];
  });
}

}  // namespace cortado::lowering
