#include "cortado/parallel/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/parallel/strategy.h"

namespace cortado {
namespace {

using ::testing::HasSubstr;

TEST(Schedule, ChunksAreReadAndWritten) {
  for (const std::string text : {"parameter", "layer", "one", "first:3", "25MiB", "1GiB", "640KiB", "100B"})
    EXPECT_EQ(chunks_text(parse_chunks(text, "test")), text);
  EXPECT_EQ(parse_chunks("2048KiB", "test"), parse_chunks("2MiB", "test"));
  EXPECT_EQ(chunks_text({}), "1MiB");
  EXPECT_EQ(schedule_text({}), "1MiB, late updates");
}

TEST(Schedule, WrongChunksAreRefused) {
  for (const std::string text :
       {"", "two", "first:", "first:0", "first:-1", "first:3x", "MiB", "0MiB", "-1MiB", "1.5MiB", "4 MiB",
        "4MB", "9999999999999GiB", "99999999999999999999B"}) {
    try {
      parse_chunks(text, "--gradient-chunks");
      FAIL() << "'" << text << "' was taken";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--gradient-chunks: '" + text + "'"));
      EXPECT_THAT(error.what(), HasSubstr("4MiB"));
    }
  }
}

Strategy parsed(const std::string& schedule) {
  return parse_strategy(R"({"format": "cortado-strategy", "version": 1, "schedule": )" + schedule +
                            R"(, "layers": {"*": {"n": 2}}})",
                        "s.json");
}

TEST(Schedule, StandsInAStrategyFile) {
  const Strategy strategy =
      parsed(R"({"gradient_chunks": "first:2", "late_updates": false, "halves": true})");
  EXPECT_EQ(strategy.schedule.chunks, parse_chunks("first:2", "test"));
  EXPECT_FALSE(strategy.schedule.late_updates);
  EXPECT_TRUE(strategy.schedule.halves);
  EXPECT_EQ(parse_strategy(strategy_text(strategy), "again"), strategy);
  EXPECT_EQ(parsed("{}").schedule, Schedule{});
  EXPECT_EQ(strategy_text(parsed("{}")).find("schedule"), std::string::npos);
}

TEST(Schedule, WrongOnesInAFileAreRefused) {
  auto expect_refused = [](const std::string& schedule, const std::string& told) {
    try {
      parsed(schedule);
      FAIL() << schedule << " was taken";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("s.json"));
      EXPECT_THAT(error.what(), HasSubstr(told));
    }
  };
  expect_refused("3", "is not an object");
  expect_refused(R"({"chunks": "one"})", "no key \"chunks\"");
  expect_refused(R"({"gradient_chunks": 3})", "is not a text");
  expect_refused(R"({"gradient_chunks": "some"})", "'some'");
  expect_refused(R"({"late_updates": "yes"})", "is not true or false");
  expect_refused(R"({"halves": 1})", "is not true or false");
}

}  // namespace
}  // namespace cortado
