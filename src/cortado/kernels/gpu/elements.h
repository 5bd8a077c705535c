#pragma once

#include "cortado/kernels/gpu/grid.h"

namespace cortado::gpu {

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
