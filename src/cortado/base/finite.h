#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace cortado {

inline bool is_finite(float value) { return (std::bit_cast<uint32_t>(value) & 0x7F800000u) != 0x7F800000u; }

// Index of the first value that is infinite or not a number; -1 when there is none. On the calling thread.
inline int64_t first_non_finite(std::span<const float> values) {
  constexpr int64_t block = 1024;
  const auto count = static_cast<int64_t>(values.size());
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t end = begin + block < count ? begin + block : count;
    int bad = 0;
    for (int64_t i = begin; i < end; ++i) bad |= !is_finite(values[static_cast<size_t>(i)]);
    if (!bad) continue;
    for (int64_t i = begin; i < end; ++i)
      if (!is_finite(values[static_cast<size_t>(i)])) return i;
  }
  return -1;
}

}  // namespace cortado
