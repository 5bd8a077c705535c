#include "cortado/base/random.h"

#include <gtest/gtest.h>

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
