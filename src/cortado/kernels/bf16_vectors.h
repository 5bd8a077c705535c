#pragma once

#include <cstdint>

namespace cortado {

// `count` elements in registers.
template <typename Element, int64_t count>
using VectorOf [[gnu::vector_size(count * sizeof(Element))]] = Element;

// Returns each float of the vector V rounded to the nearest bf16, ties to even. What is not a number stays
// so: to_bf16() (base/bf16.h) for all at once.
template <typename V>
inline auto nearest_bf16(V value) {
  constexpr int64_t count = sizeof(V) / sizeof(float);
  const auto bits = reinterpret_cast<VectorOf<uint32_t, count>>(value);
  const auto nearest = bits + 0x7FFF + (bits >> 16 & 1), quiet = bits | 0x400000;
  return __builtin_convertvector((value == value ? nearest : quiet) >> 16, VectorOf<uint16_t, count>);
}

}  // namespace cortado
