#include "cortado/report/time_report.h"

#include <gtest/gtest.h>

namespace cortado {
namespace {

TEST(TimeReport, TheIterationToShowIsTheOneNearestTheMedian) {
  std::vector<IterationTimes> times;
  for (double step : {9.0, 1.0, 4.9, 5.2, 8.0, 5.1}) times.push_back({.step = {step}});
  TimeReport report;
  report.step = {5.1};
  EXPECT_EQ(nearest_to(report, times, 1), 5u);
  EXPECT_EQ(nearest_to(report, times, 2), 2u) << "of the first, third and fifth";
  EXPECT_EQ(nearest_to(report, times, 3), 3u);
  EXPECT_EQ(nearest_to(report, times, 6), 0u) << "of the first alone";
}

}  // namespace
}  // namespace cortado
