// Loads and stores of bf16 against the definition, and that against the neighbours of a number.
#include "cortado/kernels/native/simd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace cortado::native {
namespace {

bf16 pattern(uint32_t bits) { return {static_cast<uint16_t>(bits)}; }
uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
bool is_tiny(float value) { return std::abs(value) < std::numeric_limits<float>::min(); }

// Equal numbers stored at once; numbers too small to be normal may become zero.
testing::AssertionResult stores_as_defined(float value) {
  const bf16 expected = to_bf16(value);
  alignas(64) bf16 many[lanes], streamed[lanes], one;
  float values[lanes];
  std::fill_n(values, lanes, value);
  store(many, load<floats>(values));
  store<true>(streamed, load<floats>(values));
  store(&one, value);
  finish_streaming();
  auto right = [&](bf16 stored) {
    const bool zero =
        is_tiny(value) && to_float(stored) == 0 && std::signbit(to_float(stored)) == std::signbit(value);
    return stored == expected || zero;
  };
  bool all = one == expected;
  for (int lane = 0; lane < lanes; ++lane) all = all && right(many[lane]) && many[lane] == streamed[lane];
  if (all) return testing::AssertionSuccess();
  return testing::AssertionFailure() << std::hex << bits_of(value) << " is stored as " << many[0].bits << ", "
                                     << one.bits << " instead of " << expected.bits;
}

TEST(Bf16Memory, EveryPatternIsLoaded) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    bf16 many[lanes];
    for (int lane = 0; lane < lanes; ++lane) many[lane] = pattern(bits ^ static_cast<uint32_t>(lane));
    const floats loaded = load<floats>(many);
    for (int lane = 0; lane < lanes; ++lane) {
      const uint32_t expected = (bits ^ static_cast<uint32_t>(lane)) << 16;
      ASSERT_EQ(bits_of(loaded[lane]), expected);
      ASSERT_EQ(bits_of(load<float>(many + lane)), expected);
    }
  }
}

TEST(Bf16Memory, EveryPatternIsStoredAsItIs) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(pattern(bits));
    ASSERT_TRUE(stores_as_defined(value));
    const uint32_t quiet = value != value ? bits | 0x40 : bits;
    ASSERT_EQ(to_bf16(value).bits, quiet);
  }
}

// Of a number between two neighbours the nearer is stored; of one in the middle, the even one.
TEST(Bf16Memory, TheNearestIsStored) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7F80) == 0x7F80) continue;  // without a neighbour above
    const uint32_t low = bits << 16, even = bits + (bits & 1);
    const std::pair<uint32_t, uint32_t> cases[] = {{low + 1, bits},
                                                   {low + 0x7FFF, bits},
                                                   {low + 0x8000, even},
                                                   {low + 0x8001, bits + 1},
                                                   {low + 0xFFFF, bits + 1}};
    for (const auto& [given, stored] : cases) {
      const float value = std::bit_cast<float>(given);
      ASSERT_EQ(to_bf16(value).bits, stored) << std::hex << given;
      ASSERT_TRUE(stores_as_defined(value));
    }
  }
}

TEST(Bf16Memory, WhatIsNotFiniteStaysSo) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_bf16(infinity).bits, 0x7F80);
  EXPECT_EQ(to_bf16(-infinity).bits, 0xFF80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7F80) << "beyond the largest bf16";
  for (uint32_t bits : {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0xFF800001u, 0xFFFFFFFFu, 0x7F80FFFFu}) {
    const float value = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(to_float(to_bf16(value))));
    EXPECT_TRUE(stores_as_defined(value));
  }
}

TEST(Bf16Memory, RandomNumbersAreStoredAsDefined) {
  std::mt19937 generator(7);
  for (int i = 0; i < 1000000; ++i)
    ASSERT_TRUE(stores_as_defined(std::bit_cast<float>(static_cast<uint32_t>(generator()))));
}

}  // namespace
}  // namespace cortado::native
