// Passes over whole arrays against plain loops.
#include "cortado/kernels/arrays.h"

#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "cortado/base/compute_threads.h"
#include "cortado/base/random.h"
#include "cortado/kernels/native/relu_mask.h"

namespace cortado::arrays {
namespace {

std::vector<float> numbers(int64_t count, uint32_t draw) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(RandomStream{.seed = 5}.uniform(i, draw, -1, 1));
  }
  return values;
}

const std::vector<int64_t> counts = {0, 1, 7, 16, 100, 8192, 100003};

TEST(Arrays, AddsInOrder) {
  for (int64_t count : counts) {
    std::vector<std::vector<float>> terms;
    std::vector<const float*> pointers;
    for (uint32_t t = 0; t < 6; ++t) terms.push_back(numbers(count, t));
    for (const auto& term : terms) pointers.push_back(term.data());
    for (size_t used = 1; used <= terms.size(); ++used) {
      std::vector<float> expected(count), actual(count);
      for (int64_t i = 0; i < count; ++i) {
        expected[i] = terms[0][i];
        for (size_t t = 1; t < used; ++t) expected[i] += terms[t][i];
      }
      sum(actual.data(), std::span(pointers).first(used), count);
      EXPECT_EQ(actual, expected);
    }
    std::vector<float> target = terms[0];
    add(target.data(), target.data(), pointers[1], count);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(target[i], terms[0][i] + terms[1][i]);
  }
}

TEST(Arrays, CopiesAll) {
  for (int64_t count : counts) {
    const std::vector<float> source = numbers(count, 0);
    std::vector<float> target(count);
    copy(target.data(), source.data(), count);
    EXPECT_EQ(target, source);
  }
}

TEST(ReluMask, MasksByTheOutput) {
  for (int64_t count : counts) {
    auto a = numbers(count, 0), y = numbers(count, 1);
    std::vector<float> target(count);
    native::relu_mask(target.data(), a.data(), y.data(), count);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(target[i], y[i] > 0 ? a[i] : 0);
  }
}

TEST(Arrays, SumsSquaresTheSameWithAnyThreads) {
  const int threads = compute_threads();
  for (int64_t count : counts) {
    auto x = numbers(count, 0);
    double expected = 0;
    for (float value : x) expected += double{value} * double{value};
    const double actual = sum_of_squares(x.data(), count);
    EXPECT_NEAR(actual, expected, 1e-12 * expected);
    set_compute_threads(3);
    EXPECT_EQ(sum_of_squares(x.data(), count), actual);
    set_compute_threads(threads);
  }
}

TEST(Arrays, FindsTheFirstNonFinite) {
  for (int64_t count : counts) {
    auto x = numbers(count, 0);
    EXPECT_EQ(first_non_finite(x.data(), count), -1);
    if (count == 0) continue;
    for (int64_t at : {int64_t{0}, count / 2, count - 1}) {
      for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity()}) {
        auto broken = x;
        broken[at] = broken[count - 1] = bad;
        EXPECT_EQ(first_non_finite(broken.data(), count), at);
      }
    }
  }
}

}  // namespace
}  // namespace cortado::arrays
