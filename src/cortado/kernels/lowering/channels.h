#pragma once

#include <cstdint>

#include "cortado/base/bf16.h"
#include "cortado/kernels/kernel.h"

namespace cortado::lowering {

// Input 0 or, where it is an empty part, which has no memory, a place that offsets may count from.
inline const float* first_input(const Arguments& arguments) {
  static constexpr float nothing = 0;
  return arguments.inputs[0] ? arguments.inputs[0] : &nothing;
}

// The backward pass of a leaky ReLU in place: gradient *= rectified > 0 ? 1 : slope.
void mask_gradient(const float* rectified, float slope, int64_t count, float* gradient);
void mask_gradient(const bf16* rectified, float slope, int64_t count, bf16* gradient);

// sums[channel] = sum over rows of values[row][channel].
void sum_rows(const float* values, int64_t rows, int64_t channels, float* sums);

}  // namespace cortado::lowering
