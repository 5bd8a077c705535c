#pragma once

#include <cstdint>

#include "cortado/base/bf16.h"

namespace cortado::native {

// target[i] = y[i] > 0 ? a[i] : 0 * a[i] for i in [0, count), on all compute threads: the gradient in front
// of a ReLU with output y. `target` may be `a` or `y`.
void relu_mask(float* target, const float* a, const float* y, int64_t count);
void relu_mask(bf16* target, const bf16* a, const bf16* y, int64_t count);
void relu_mask(bf16* target, const float* a, const float* y, int64_t count);

}  // namespace cortado::native
