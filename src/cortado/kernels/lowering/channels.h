#pragma once

#include <cstdint>

namespace cortado::lowering {

// The backward pass of a leaky ReLU in place: gradient *= rectified > 0 ? 1 : slope.
void mask_gradient(const float* rectified, float slope, int64_t count, float* gradient);

// sums[channel] = sum over rows of values[row][channel].
void sum_rows(const float* values, int64_t rows, int64_t channels, float* sums);

}  // namespace cortado::lowering
