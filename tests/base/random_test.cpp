#include "cortado/base/random.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <utility>
#include <vector>

namespace cortado {
namespace {

// Known answers published with the Philox4x32-10 generator (Random123's kat_vectors).
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, DependsOnEachOfItsKeys) {
  RandomStream a{.seed = 1, .iteration = 2, .owner = 3};
  RandomStream seed = a, iteration = a, owner = a;
  seed.seed = 2;
  iteration.iteration = 3;
  owner.owner = 4;
  EXPECT_EQ(a.bits(17), (RandomStream{1, 2, 3}).bits(17));
  EXPECT_NE(a.bits(17), a.bits(18));
  EXPECT_NE(a.bits(17), a.bits(17, 1));
  EXPECT_NE(a.bits(17), seed.bits(17));
  EXPECT_NE(a.bits(17), iteration.bits(17));
  EXPECT_NE(a.bits(17), owner.bits(17));
}

// Two in a million normal numbers lie so near to the middle of two floats that they are computed twice.
TEST(RandomStream, GivesRunsTheBitsOfSingleNumbers) {
  const RandomStream streams[] = {{.seed = 7},
                                  {.seed = ~uint64_t{0} / 3, .iteration = uint64_t{5} << 33, .owner = 9}};
  const std::pair<double, double> ranges[] = {{0, 0.01}, {-0.02, 0.02}, {3, 2},
                                              {1e30, 0}, {0, 1e39},     {-1, -0.5}};
  for (const RandomStream& stream : streams) {
    for (const int64_t count : {1, 32, 33, 256, 257, 300, 3000000}) {
      const uint64_t first = (uint64_t{1} << 32) - 100;
      for (const auto& [a, b] : count == 3000000 ? std::span(ranges, 1) : std::span(ranges)) {
        std::vector<float> uniforms(static_cast<size_t>(count) + 1, 42), normals = uniforms;
        stream.uniforms(first, count, a, b, uniforms.data());
        stream.normals(first, count, a, b, normals.data());
        for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
          ASSERT_EQ(uniforms[i], static_cast<float>(stream.uniform(first + i, 0, a, b))) << i;
          ASSERT_EQ(normals[i], static_cast<float>(stream.normal(first + i, 0, a, b))) << i;
        }
        EXPECT_EQ(uniforms.back(), 42);
        EXPECT_EQ(normals.back(), 42);
      }
    }
  }
}

TEST(RandomStream, HasTheMomentsOfItsDistributions) {
  RandomStream stream{.seed = 7};
  constexpr int count = 200000;
  double sum = 0, squares = 0, uniform = 0;
  for (int i = 0; i < count; ++i) {
    double value = stream.normal(i, 0, 3, 2);
    sum += value;
    squares += (value - 3) * (value - 3);
    uniform += stream.uniform(i, 5);
  }
  EXPECT_NEAR(sum / count, 3, 0.02);
  EXPECT_NEAR(squares / count, 4, 0.05);
  EXPECT_NEAR(uniform / count, 0.5, 0.005);
}

}  // namespace
}  // namespace cortado
