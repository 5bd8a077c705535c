#pragma once

#include <bit>
#include <cstdint>

namespace cortado {

// A bfloat16 number: the upper half of a float's bits. Only stored; arithmetic is of floats.
struct bf16 {
  uint16_t bits = 0;
  bool operator==(const bf16&) const = default;
};

constexpr float to_float(bf16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

// The nearest, ties to even. What is not a number stays so.
constexpr bf16 to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

}  // namespace cortado
