#include "cortado/comm/under_way.h"

#include <gtest/gtest.h>
#include <thread>

namespace cortado {
namespace {

using namespace std::chrono_literals;

constexpr int64_t segment = 1000;

TEST(UnderWay, HasNoLimitWithinAHost) {
  UnderWay under_way;
  under_way.add(1 << 30);
  EXPECT_TRUE(under_way.others_may_send());
  under_way.arrived(UnderWay::Clock::now() - 10ms);
  EXPECT_TRUE(under_way.others_may_send());
}

TEST(UnderWay, IsTwoSegmentsAtFirst) {
  UnderWay under_way;
  under_way.limit(segment);
  under_way.add(2 * segment - 1);
  EXPECT_TRUE(under_way.may_send());
  under_way.add(1);
  EXPECT_FALSE(under_way.may_send());
  under_way.add(-1);
  EXPECT_TRUE(under_way.may_send());
}

TEST(UnderWay, LetsTheUrgentGoFirst) {
  UnderWay under_way;
  under_way.limit(segment);
  under_way.urgent_waits(true);
  EXPECT_TRUE(under_way.may_send());
  EXPECT_FALSE(under_way.others_may_send());
  under_way.urgent_waits(false);
  EXPECT_TRUE(under_way.others_may_send());
}

// How many segments may be under way.
int64_t limit_of(UnderWay& under_way) {
  int64_t count = 0;
  for (; under_way.may_send(); ++count) under_way.add(segment);
  under_way.add(-count * segment);
  return count;
}

TEST(UnderWay, IsMoreWhereSegmentsArriveEarlyAndLessWhereLate) {
  UnderWay under_way;
  under_way.limit(segment);
  under_way.arrived(UnderWay::Clock::now());
  EXPECT_EQ(limit_of(under_way), 3);
  under_way.arrived(UnderWay::Clock::now() - 1ms);  // neither
  EXPECT_EQ(limit_of(under_way), 3);
  for (int i = 0; i < 100; ++i) under_way.arrived(UnderWay::Clock::now());
  EXPECT_EQ(limit_of(under_way), 16);
  for (int i = 0; i < 100; ++i) under_way.arrived(UnderWay::Clock::now() - 5ms);
  EXPECT_EQ(limit_of(under_way), 2);
}

TEST(UnderWay, IsUnlimitedWhereNothingArrivesAnyMore) {
  UnderWay under_way;
  under_way.limit(segment);
  under_way.add(2 * segment);
  under_way.arrived(UnderWay::Clock::now() - 5ms);
  EXPECT_FALSE(under_way.may_send());
  std::this_thread::sleep_for(150ms);
  EXPECT_TRUE(under_way.may_send());
  under_way.arrived(UnderWay::Clock::now() - 5ms);
  EXPECT_FALSE(under_way.may_send());
}

}  // namespace
}  // namespace cortado
