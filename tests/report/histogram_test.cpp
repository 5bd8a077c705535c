#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "cortado/report/event_message.h"

namespace cortado {
namespace {

TEST(Histogram, CountsWhatLiesBetweenItsLimits) {
  std::mt19937 random(3);
  for (const float scale : {1e-38F, 1e-3F, 1.F, 1e30F}) {
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> values(5000);
    for (float& value : values) value = scale * normal(random);
    const Histogram histogram = histogram_of(values);
    ASSERT_EQ(histogram.limits.size(), histogram.counts.size());
    for (size_t bucket = 0; bucket < histogram.limits.size(); ++bucket) {
      const double above =
          bucket == 0 ? -std::numeric_limits<double>::infinity() : histogram.limits[bucket - 1];
      const double limit = histogram.limits[bucket];
      ASSERT_LT(above, limit);
      int64_t count = 0;
      for (const double value : values) count += value > above && value <= limit ? 1 : 0;
      EXPECT_EQ(histogram.counts[bucket], count) << bucket;
    }
    long double sum = 0, squares = 0;
    for (const long double value : values) sum += value, squares += value * value;
    EXPECT_NEAR(histogram.sum, static_cast<double>(sum), 1e-10 * scale * 5000);
    EXPECT_NEAR(histogram.sum_of_squares, static_cast<double>(squares), 1e-10 * static_cast<double>(squares));
    EXPECT_EQ(histogram.least, *std::min_element(values.begin(), values.end()));
    EXPECT_EQ(histogram.limits.back(), *std::max_element(values.begin(), values.end()));
  }
}

TEST(Histogram, TakesEqualValuesAndNone) {
  const Histogram zeros = histogram_of(std::vector<float>(7, 0.F));
  EXPECT_EQ(zeros.counts, std::vector<int64_t>{7});
  EXPECT_EQ(zeros.limits, std::vector<double>{0});
  EXPECT_TRUE(histogram_of({}).counts.empty());
  const float next = std::nextafter(1.F, 2.F);
  const Histogram near = histogram_of(std::vector<float>{1.F, next});
  EXPECT_EQ(near.counts.front(), 1);
  EXPECT_EQ(near.counts.back(), 1);
}

}  // namespace
}  // namespace cortado
