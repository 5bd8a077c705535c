#pragma once

#include <bit>
#include <cmath>

#include "cortado/kernels/native/simd.h"

namespace cortado::native {

// Elementary functions of one float or a vector of them; ranges and polynomials are those of S. Moshier's
// Cephes library (single precision). They carry NaN through.

// e^x within 2 units in the last place for x in [-87.3, 88.37]; outside, the value at the nearer end.
template <typename V>
inline V exp(V x) {
  constexpr float low = -87.3365f, high = 88.3762f, rounding = 0x1.8p23f;
  x = x > high ? splat<V>(high) : x;
  x = x < low ? splat<V>(low) : x;
  const V shifted = x * 1.44269504f + rounding;  // the nearest integer is in its last bits
  const V n = shifted - rounding;
  const V r = x - n * 0.693359375f + n * 2.12194440e-4f;
  V p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1;
  using I = ints_of<V>;
  const I exponent = std::bit_cast<I>(shifted) - std::bit_cast<int32_t>(rounding) + 127;
  return p * std::bit_cast<V>(exponent << 23);
}

template <typename V>
inline V absolute(V x) {
  return std::bit_cast<V>(std::bit_cast<ints_of<V>>(x) & 0x7FFFFFFF);
}

template <typename V>
inline V tanh(V x) {
  const V magnitude = absolute(x), square = x * x;
  V p = square * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  p = p * square * x + x;
  const V large = 1 - 2 / (exp(2 * magnitude) + 1);
  return magnitude < 0.625f ? p : x < 0 ? -large : large;
}

template <typename V>
inline V sigmoid(V x) {
  return 1 / (1 + exp(-x));
}

// function(x) of the standard library, lane by lane.
template <typename V, typename Function>
inline V by_lane(V x, Function&& function) {
  if constexpr (std::is_same_v<V, float>) {
    return function(x);
  } else {
    for (int64_t lane = 0; lane < lanes_of<V>; ++lane) x[lane] = function(x[lane]);
    return x;
  }
}

}  // namespace cortado::native
