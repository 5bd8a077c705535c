#pragma once

#include "cortado/kernels/gpu/grid.h"

namespace cortado::gpu {

// i % count: by numbers of 32 bits where they do, which GPUs divide several times as fast.
CORTADO_EVERYWHERE inline int64_t remainder_of(int64_t i, int64_t count) {
  if (((i | count) >> 32) != 0) return i % count;
  return static_cast<uint32_t>(i) % static_cast<uint32_t>(count);
}

template <typename E>
struct CopyElement {
  const E* x;
  E* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const { y[i] = x[i]; }
};

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
