#include "cortado/layers/filler.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "cortado/base/error.h"

namespace cortado {
namespace {

using Type = Filler::Type;

// Every element of a part has the value that it has in the whole, whatever the filler and the box.
TEST(Filler, FillsPartsAsTheWhole) {
  std::vector<Filler> fillers(8);
  fillers[0] = {.type = Type::constant, .value = 3};
  fillers[1] = {.type = Type::uniform, .min = -2, .max = 5};
  fillers[2] = {.type = Type::gaussian, .mean = 1, .std = 2};
  fillers[3] = {.type = Type::gaussian, .std = 2, .sparse = 2};
  fillers[4] = {.type = Type::positive_unitball};
  fillers[5] = {.type = Type::xavier, .variance_norm = Filler::VarianceNorm::average};
  fillers[6] = {.type = Type::msra};
  fillers[7] = {.type = Type::bilinear};
  const Shape shape{5, 4, 3, 3};
  const RandomStream stream{.seed = 9, .owner = 77};
  std::mt19937 random(3);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 200; ++trial) {
    const Filler& filler = fillers[static_cast<size_t>(trial) % fillers.size()];
    std::vector<float> whole(static_cast<size_t>(shape.size()));
    fill(filler, shape, stream, whole.data());
    Box part = Box::whole(shape);
    for (int axis = 0; axis < 4; ++axis) {
      if (pick(0, 1)) continue;
      part[axis].begin = pick(0, shape[axis]);
      part[axis].end = pick(part[axis].begin, shape[axis]);
    }
    std::vector<float> expected;
    for (int64_t a = part[0].begin; a < part[0].end; ++a)
      for (int64_t b = part[1].begin; b < part[1].end; ++b)
        for (int64_t c = part[2].begin; c < part[2].end; ++c)
          for (int64_t d = part[3].begin; d < part[3].end; ++d)
            expected.push_back(whole[static_cast<size_t>(((a * 4 + b) * 3 + c) * 3 + d)]);
    std::vector<float> values(expected.size());
    fill(filler, shape, part, stream, values.data());
    EXPECT_EQ(values, expected) << "filler " << trial % 8 << ", part " << part.text();
  }
}

TEST(Filler, RowsOfTheUnitBallSumToOne) {
  std::vector<float> values(3 * 50), lone(1);
  fill({.type = Type::positive_unitball}, {3, 50}, {.seed = 1}, values.data());
  for (int n = 0; n < 3; ++n) {
    double sum = 0;
    for (int i = 0; i < 50; ++i) sum += values[n * 50 + i];
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  fill({.type = Type::constant, .value = 4}, Shape{}, {.seed = 1}, lone.data());
  EXPECT_EQ(lone[0], 4);
}

// A tent over the middle of the kernel, (k - 1) / 2, that falls by one over ceil(k / 2) positions.
TEST(Filler, BilinearWeightsAreSymmetricTents) {
  for (int64_t k = 1; k <= 16; ++k) {
    std::vector<float> values(static_cast<size_t>(2 * k * k));
    fill({.type = Type::bilinear}, {2, 1, k, k}, {.seed = 1}, values.data());
    const double middle = (static_cast<double>(k) - 1) / 2, slope = static_cast<double>(k - k / 2);
    auto tent = [&](int64_t at) { return 1 - std::abs(static_cast<double>(at) - middle) / slope; };
    for (int64_t i = 0; i < 2 * k * k; ++i)
      EXPECT_NEAR(values[static_cast<size_t>(i)], tent(i / k % k) * tent(i % k), 1e-6) << k << ", " << i;
  }
  std::vector<float> three(9);
  fill({.type = Type::bilinear}, {1, 1, 3, 3}, {.seed = 1}, three.data());
  EXPECT_EQ(three, (std::vector<float>{.25, .5, .25, .5, 1, .5, .25, .5, .25}));
}

}  // namespace
}  // namespace cortado
