#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "cortado/kernels/native/simd.h"
#include "cortado/kernels/native/vector_math.h"

namespace cortado::native {

// s^-0.75 within 5e-7 for normal positive s: the third power of y = s^-0.25, which starts at a linear guess
// in the exponent (within 3 %) and takes Newton steps on y^-4 = s.
template <typename V>
inline V power_minus_three_quarters(V s) {
  V y = std::bit_cast<V>(0x4F586000 - (std::bit_cast<ints_of<V>>(s) >> 2));
  const V quarter = s * 0.25f;
  for (int step = 0; step < 3; ++step) {
    const V square = y * y;
    y = y * (1.25f - quarter * (square * square));
  }
  return y * y * y;
}

// run(power) with power.operator()<V>(s) = s^-beta: what LRN multiplies by.
template <typename Run>
void with_power(float beta, Run&& run) {
  if (beta == 0.75f) {
    run([]<typename V>(V s) { return power_minus_three_quarters(s); });
  } else {
    run([beta]<typename V>(V s) {
      return by_lane(s, [beta](float value) { return std::pow(value, -beta); });
    });
  }
}

}  // namespace cortado::native
