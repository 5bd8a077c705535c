#include "cortado/tune/tune_schedule.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace cortado {
namespace {

std::string text_of(const Schedule& schedule) {
  return chunks_text(schedule.chunks) + (schedule.late_updates ? " late" : "");
}

TEST(TuneSchedule, FindsTheCheapestOfAll) {
  for (const std::string best :
       {"first:3", "first:12 late", "parameter late", "one", "16MiB late", "layer"}) {
    const TunedSchedule found = tune_schedule(
        {}, 16, [&](const Schedule& schedule) { return Seconds{text_of(schedule) == best ? 1.0 : 2.0}; });
    EXPECT_EQ(text_of(found.schedule), best);
    EXPECT_EQ(found.seconds, Seconds{1});
    EXPECT_EQ(found.before, Seconds{2});
  }
}

TEST(TuneSchedule, NothingIsTriedTwiceAndEqualsStayAsTheyWere) {
  std::set<std::string> tried;
  const Schedule start{.chunks = parse_chunks("3KiB", "test"), .late_updates = false};
  const TunedSchedule found = tune_schedule(start, 5, [&](const Schedule& schedule) {
    EXPECT_TRUE(tried.insert(text_of(schedule)).second) << text_of(schedule);
    EXPECT_TRUE(schedule.chunks.kind != GradientChunks::Kind::first || schedule.chunks.layers < 5);
    return Seconds{1};
  });
  EXPECT_EQ(found.schedule, start);
  EXPECT_EQ(found.tried, static_cast<int>(tried.size()));
}

}  // namespace
}  // namespace cortado
