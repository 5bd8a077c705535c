#include "cortado/program/exposure.h"

#include <gtest/gtest.h>

#include "tests/sim/jobs.h"

namespace cortado {
namespace {

using testing::carries;
using testing::machine_of;
using testing::programs_of;

// Compute steps of a rank, and stretches in which it waited: none at the same time.
void check_disjoint(std::span<const TimelineEntry> own, const std::vector<Exposure>& exposures) {
  std::vector<std::pair<double, double>> stretches;
  for (const TimelineEntry& entry : own)
    if (entry.lane == Lane::compute && entry.begin < entry.end)
      stretches.push_back({entry.begin.count, entry.end.count});
  for (const Exposure& exposure : exposures) {
    EXPECT_LT(exposure.begin, exposure.end);
    stretches.push_back({exposure.begin.count, exposure.end.count});
  }
  std::ranges::sort(stretches);
  for (size_t i = 1; i < stretches.size(); ++i)
    EXPECT_LE(stretches[i - 1].second, stretches[i].first + 1e-12);
}

// In a simulated iteration a rank computes or waits for messages, and does nothing else: what it waits for
// each message adds up to what is left of the iteration, and no message is waited for longer than it takes.
TEST(Exposure, OfRandomJobsAddsUpToWhatIsNotComputed) {
  int waited = 0, carried = 0;
  testing::simulate_random_jobs(60, [&](const testing::RandomJob& job, const Simulation& found) {
    const auto& programs = job.programs;
    for (const Program& program : programs) {
      const auto own = testing::entries_of(program, found);
      const auto exposures = exposures_of(program, own, found.iteration);
      check_disjoint(own, exposures);
      IndexedVector<StepIndex, double> of_step(program.steps.size());
      double sum = 0;
      for (const Exposure& exposure : exposures) {
        ASSERT_EQ(program.steps[exposure.step].lane, Lane::communication);
        of_step[exposure.step] += (exposure.end - exposure.begin).count;
        sum += (exposure.end - exposure.begin).count;
      }
      const auto rank = static_cast<size_t>(program.rank);
      if (carries(programs)) {
        ++carried;
        continue;  // a rank may begin before others have ended
      }
      EXPECT_NEAR(sum, (found.ends[rank] - found.computing[rank]).count, 1e-9 * found.iteration.count);
      for (const TimelineEntry& entry : own)
        EXPECT_LE(of_step[entry.step], (entry.end - entry.begin).count + 1e-9 * found.iteration.count);
      if (sum > 0) ++waited;
    }
  });
  EXPECT_GT(waited, 20);
  EXPECT_GT(carried, 20);
}

// One conv after another one, its input gathered: the compute lane waits for the gather, whatever else moves.
TEST(Exposure, NamesTheMessageAndItsLayer) {
  testing::NetBuilder builder;
  const Network net = builder.conv("a", "data").conv("b", "a").build(Phase::test);
  const Strategy strategy = parse_strategy(
      R"({"format": "cortado-strategy", "version": 1, "ranks": 2, "layers": {"a": {"c": 2}, "b": {"n": 2}}})",
      "test");
  const DeviceGraph machine = machine_of(1, 2);
  const auto programs = programs_of(net, strategy, 2);
  AnalyticCosts costs(machine);
  const Simulation found = simulate(programs, costs, machine);
  const auto own = std::span(found.timeline).first(programs[0].steps.size());
  double of_b = 0;
  for (const Exposure& exposure : exposures_of(programs[0], own, found.iteration)) {
    const Step& step = programs[0].steps[exposure.step];
    const WorkIndex work = layer_work(programs[0], step);
    if (!work) continue;
    EXPECT_EQ(name_of(programs[0].works[work], net), "b");
    const TimelineEntry& entry = own[static_cast<size_t>(exposure.step.value())];
    EXPECT_NEAR(exposure.begin.count, entry.begin.count, 1e-12);
    EXPECT_NEAR(exposure.end.count, entry.end.count, 1e-12);
    of_b += (exposure.end - exposure.begin).count;
  }
  EXPECT_GT(of_b, 1e-6);
}

// A late update waits for a sum that the iteration before left under way: in a simulated timeline, which
// shows the sum that this iteration leaves, as in a measured one, which shows the former.
TEST(Exposure, FindsWhatTheIterationBeforeLeft) {
  Program program;
  program.steps = {Step{.action = steps::Update{}, .waits_before = {StepIndex(2)}},
                   Step{.action = steps::Compute{}},
                   Step{.action = steps::SumGradient{}, .lane = Lane::communication, .carried = true}};
  program.forward_end = 2;
  const auto at = [](int step, Lane lane, double begin, double end) {
    return TimelineEntry{0, lane, StepIndex(step), {begin}, {end}};
  };
  const TimelineEntry update = at(0, Lane::compute, 3, 4), forward = at(1, Lane::compute, 4, 10);
  const std::vector<TimelineEntry> simulated{update, forward, at(2, Lane::communication, 9, 13)};
  const std::vector<TimelineEntry> measured{update, forward, at(2, Lane::communication, -1, 3)};
  for (const auto& own : {simulated, measured}) {
    const auto exposures = exposures_of(program, own, {10});
    ASSERT_EQ(exposures.size(), 1u);
    EXPECT_EQ(exposures[0].step, StepIndex(2));
    EXPECT_EQ(exposures[0].begin, Seconds{0});
    EXPECT_EQ(exposures[0].end, Seconds{3});
  }
}

}  // namespace
}  // namespace cortado
