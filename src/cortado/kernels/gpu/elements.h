#pragma once

#include "cortado/kernels/gpu/grid.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado::gpu {

// i / count: by numbers of 32 bits where they do, which GPUs divide several times as fast.
CORTADO_EVERYWHERE inline int64_t quotient_of(int64_t i, int64_t count) {
  if (((i | count) >> 32) != 0) return i / count;
  return static_cast<uint32_t>(i) / static_cast<uint32_t>(count);
}

// Divides i by count; gives the remainder.
CORTADO_EVERYWHERE inline int64_t divide(int64_t& i, int64_t count) {
  const int64_t quotient = quotient_of(i, count), rest = i - quotient * count;
  i = quotient;
  return rest;
}

// Functions of for_each_value().
template <typename E>
struct CopyValue {
  const E* x;
  CORTADO_EVERYWHERE E operator()(int64_t i) const { return x[i]; }
};

template <typename E, bool relu = false>
struct SumOfTwo {  // what is not finite, and negative, becomes not a number
  const E *a, *b;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    const float sum = value_of(a[i]) + value_of(b[i]);
    return rounded<E>(relu && !(sum > 0) ? 0 * sum : sum);
  }
};

// Functions of for_each().
struct RoundElement {
  const double* from;
  float* to;
  CORTADO_EVERYWHERE void operator()(int64_t i) const { to[i] = static_cast<float>(from[i]); }
};

struct FillElement {
  float value;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const { y[i] = value; }
};

}  // namespace cortado::gpu
