#pragma once

#include "cortado/base/bf16.h"
#include "cortado/kernels/everywhere.h"

// Elements of tensors are float or bf16 in memory, and float in the elements' functions.
namespace cortado::gpu {

CORTADO_EVERYWHERE inline float value_of(float x) { return x; }
CORTADO_EVERYWHERE inline float value_of(bf16 x) { return to_float(x); }

// Rounds to the nearest element, ties to even.
template <typename E>
CORTADO_EVERYWHERE inline E rounded(float x) {
  if constexpr (sizeof(E) == sizeof(float))
    return x;
  else
    return to_bf16(x);
}

}  // namespace cortado::gpu
