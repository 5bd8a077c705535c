#include "cortado/report/trace.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "cortado/program/lower.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

// A timeline in which compute steps follow one another and communication steps overlap at random.
Timeline random_timeline(const Program& program, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> seconds(0, 1e-3);
  Timeline timeline;
  double lane = 0;
  for (StepIndex s : indices(program.steps)) {
    const bool computes = program.steps[s].lane == Lane::compute;
    const double begin = lane + (computes ? 0 : seconds(random)), end = begin + seconds(random);
    if (computes) lane = end;
    timeline.push_back({program.rank, program.steps[s].lane, s, {begin}, {end}});
  }
  return timeline;
}

std::vector<TraceSlice> slices_of_job(const Network& net, int ranks) {
  const Placement placement =
      place(net, resolve(load_strategy("random:3", net, ranks), net, ranks, "test"), ranks);
  std::vector<TraceSlice> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Program program = lower(net, placement, testing::facts_of, {.rank = rank, .after_pass = {}});
    const auto own = trace_slices(random_timeline(program, static_cast<uint32_t>(rank)), program, net);
    EXPECT_EQ(own.size(), program.steps.size());
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

TEST(Trace, HoldsEachStepOnceAndSlicesOfAThreadDoNotOverlap) {
  const auto slices = slices_of_job(testing::random_net(5), 3);
  const auto trace = nlohmann::json::parse(trace_json(slices));
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  std::set<std::pair<int, int>> steps;
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
  std::map<std::pair<int, int>, std::string> names;
  for (const auto& event : trace["traceEvents"]) {
    const std::pair<int, int> thread{event["pid"].get<int>(), event["tid"].get<int>()};
    if (event["ph"] == "M") {
      if (event["name"] == "thread_name") names[thread] = event["args"]["name"];
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    const double begin = event["ts"], length = event["dur"];
    EXPECT_GE(length, 0);
    threads[thread].push_back({begin, begin + length});
    const std::pair<int, int> step{event["pid"].get<int>(), event["args"]["step"].get<int>()};
    EXPECT_TRUE(steps.insert(step).second) << event.dump();
    EXPECT_FALSE(event["name"].get<std::string>().empty());
    EXPECT_FALSE(event["cat"].get<std::string>().empty());
  }
  EXPECT_EQ(steps.size(), slices.size());
  size_t communication = 0;
  for (auto& [thread, list] : threads) {
    EXPECT_EQ(names.at(thread), thread.second == 0 ? "compute" : "communication");
    if (thread.second > 0) ++communication;
    std::ranges::sort(list);
    for (size_t i = 1; i < list.size(); ++i) EXPECT_LE(list[i - 1].second, list[i].first + 1e-6);
  }
  EXPECT_GT(communication, 3u);  // some overlap
}

TEST(Trace, SlicesTravelAsText) {
  const auto slices = slices_of_job(testing::random_net(2), 2);
  EXPECT_EQ(parse_slices(slices_text(slices)), slices);
}

TEST(Trace, NamesSayLayerAndWhat) {
  const auto slices = slices_of_job(testing::random_net(5), 2);
  const auto has = [&](const std::string& name) {
    return std::ranges::find(slices, name, &TraceSlice::name) != slices.end();
  };
  EXPECT_TRUE(has("last forward"));
  EXPECT_TRUE(has("last backward-weights"));
}

}  // namespace
}  // namespace cortado
