#pragma once

#include <cstdint>

#include "cortado/base/bf16.h"

namespace cortado::native {

// target[i] = source[i] for i in [0, count); bf16 is rounded to the nearest. On all compute threads.
void convert(const bf16* source, float* target, int64_t count);
void convert(const float* source, bf16* target, int64_t count);

}  // namespace cortado::native
