#include "cortado/tune/tune_strategy.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

#include "cortado/tune/tuning_text.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

using testing::NetBuilder;

// Inner products have more weights than inputs and outputs.
Network small_net() {
  InnerProductOptions options;
  options.num_output = 50;
  const auto product = std::make_shared<InnerProduct>(options);
  return NetBuilder()
      .conv("a", "data")
      .declare("b", product, {"a"}, {"b"})
      .declare("c", product, {"b"}, {"c"})
      .loss("c", "b")
      .build();
}

int differences(const Strategy& one, const Strategy& other) {
  Schedule schedule = other.schedule;
  schedule.halves = one.schedule.halves;
  int count = (one.schedule != schedule) + (one.schedule.halves != other.schedule.halves);
  for (const auto& rule : one.rules) {
    const LayerStrategy& layer = *other.find(rule.pattern);
    count += (rule.layer.config != layer.config) + (rule.layer.sync != layer.sync);
  }
  return count;
}

// Every step towards the goal takes a second less.
TEST(TuneStrategy, FindsWhatEachMoveBringsNearer) {
  const Network net = small_net();
  const Strategy start = built_in_strategy("data", net, 2);
  Strategy goal = start;
  goal.schedule = {.chunks = parse_chunks("first:2", "test"), .late_updates = false, .halves = true};
  for (auto& rule : goal.rules) {
    if (rule.pattern == "c") rule.layer.sync = GradientSync::replicate;
    if (rule.pattern == "b") rule.layer = *built_in_strategy("model", net, 2).find("b");
  }
  ASSERT_EQ(differences(start, goal), 4);
  const auto seconds = [&](const Strategy& strategy) { return Seconds{1.0 + differences(strategy, goal)}; };
  const TunedStrategy all = tune_strategy(start, net, 2, seconds);
  EXPECT_EQ(differences(all.strategy, goal), 0);
  EXPECT_EQ(all.seconds, Seconds{1});
  EXPECT_EQ(all.before, Seconds{5});
  EXPECT_TRUE(all.ended);
  const TunedStrategy uncut = tune_strategy(start, net, 2, seconds, {.cuts = false, .go_on = {}});
  EXPECT_EQ(uncut.seconds, Seconds{2});
  EXPECT_EQ(uncut.strategy.find("b")->config, start.find("b")->config);
  const TunedStrategy summed = tune_strategy(start, net, 2, seconds, {.replicate = false, .go_on = {}});
  EXPECT_EQ(summed.seconds, Seconds{2});
  EXPECT_EQ(summed.strategy.find("c")->sync, GradientSync::allreduce);
}

TEST(TuneStrategy, NothingIsTriedTwiceAndEqualsStayAsTheyWere) {
  const Network net = small_net();
  for (const std::string chunks : {"3KiB", "1MiB"}) {  // one of them is of those tried
    Strategy start = built_in_strategy("data", net, 2);
    start.schedule.chunks = parse_chunks(chunks, "test");
    std::set<std::string> tried;
    const TunedStrategy found = tune_strategy(start, net, 2, [&](const Strategy& strategy) {
      EXPECT_TRUE(tried.insert(strategy_text(strategy)).second) << strategy_text(strategy);
      EXPECT_NO_THROW(resolve(strategy, net, 2, "tuned"));
      return Seconds{1};
    });
    EXPECT_EQ(differences(found.strategy, start), 0);
    EXPECT_EQ(found.tried, static_cast<int>(tried.size()));
    EXPECT_GT(found.tried, 20);
  }
}

TEST(TuneStrategy, StopsWhenItIsTold) {
  const Network net = small_net();
  int left = 5;
  const TunedStrategy found = tune_strategy(built_in_strategy("data", net, 2), net, 2,
                                            [&](const Strategy&) { return Seconds{1.0 + left}; },
                                            {.go_on = [&] { return left-- > 0; }});
  EXPECT_FALSE(found.ended);
  EXPECT_EQ(found.tried, 6);
}

// Layers that share a parameter have to be cut the same way, so neither is.
TEST(TuneStrategy, LeavesSharedParametersAlone) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const Network random = testing::random_net(seed);
    int tried = 0;
    const auto seconds = [&](const Strategy& strategy) {
      EXPECT_NO_THROW(resolve(strategy, random, 4, "tuned")) << "seed " << seed;
      return Seconds{1.0 / ++tried};  // everything is taken
    };
    tune_strategy(built_in_strategy("data", random, 4), random, 4, seconds,
                  {.go_on = [&] { return tried < 200; }});
  }
}

TEST(TuningText, SaysWhatChanged) {
  const Network net = small_net();
  const Strategy before = built_in_strategy("data", net, 2);
  TunedStrategy tuned{.strategy = before, .seconds = {0.002}, .before = {0.004}, .tried = 7, .ended = false};
  tuned.strategy.schedule.halves = true;
  for (auto& rule : tuned.strategy.rules)
    if (rule.pattern == "c") rule.layer.sync = GradientSync::replicate;
  const std::string cut = before.find("c")->config.text();
  EXPECT_EQ(tuning_text(net, before, tuned, 1.5, "the limit"),
            "tuned: 2.000 ms in place of 4.000 ms; " + schedule_text(tuned.strategy.schedule) +
                " in place of " + schedule_text(before.schedule) +
                "; best of 7 simulated in 1.5 s, then time was up (the limit)\n  c: " + cut +
                ", replicate in place of " + cut + ", allreduce\n");
}

}  // namespace
}  // namespace cortado
