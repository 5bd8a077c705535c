#include "cortado/report/advice.h"

#include <gtest/gtest.h>
#include <limits>

namespace cortado {
namespace {

// A plan of 1 s beside strategies that take so long.
plan::Plan plan_beside(double single, double data, double owt) {
  plan::Plan plan;
  plan.seconds = {1};
  const std::pair<const char*, double> baselines[] = {
      {"single", single}, {"data", data}, {"owt", owt}, {"best-of-each", 1}};
  for (const auto& [name, seconds] : baselines) {
    plan.baselines.emplace_back();
    plan.baselines.back().name = name;
    plan.baselines.back().seconds = {seconds};
  }
  return plan;
}

constexpr double never = std::numeric_limits<double>::infinity();

TEST(PlanAdvice, OnOneDeviceNothingIsCut) {
  EXPECT_EQ(
      plan_advice(plan_beside(1, 1, 1), 1, "s.json"),
      "Train without --strategy: on one device nothing is cut; a plan for more tells what they would gain.");
}

TEST(PlanAdvice, NamesAStrategyThatIsAsFast) {
  EXPECT_EQ(plan_advice(plan_beside(1.01, 1, 1), 4, "s.json"),
            "Train on one device: 4 gain next to nothing with this net and batch.");
  EXPECT_EQ(plan_advice(plan_beside(4, 1.019, 1), 4, "s.json"),
            "Train with --ranks 4 --strategy data: cutting by samples alone is as fast as this plan.");
  EXPECT_EQ(
      plan_advice(plan_beside(4, 1.313, 1.01), 4, "s.json"),
      "Train with --ranks 4 --strategy owt: 30 % faster than cutting by samples alone, and as fast as this "
      "plan.");
  EXPECT_EQ(plan_advice(plan_beside(4, 1.08, 1), 4, "s.json"),
            "Try --ranks 4 --strategy owt: 8 % faster than cutting by samples alone, and as fast as this "
            "plan; costs "
            "are true to a tenth at best, so time both.");
}

TEST(PlanAdvice, TakesThePlanWhereNothingWithANameIsAsFast) {
  EXPECT_EQ(plan_advice(plan_beside(4, 1.2, 1.5), 4, "'my s.json'"),
            "Train with --ranks 4 --strategy 'my s.json': 20 % faster than cutting by samples alone.");
  EXPECT_EQ(plan_advice(plan_beside(4, 1.08, 1.5), 4, "s.json"),
            "Try --ranks 4 --strategy s.json: 8 % faster than cutting by samples alone; costs are true to a "
            "tenth at "
            "best, so time both.");
  EXPECT_EQ(plan_advice(plan_beside(4, 2.5, 1.2), 4, ""),
            "Train with --ranks 4 --strategy FILE, the file that --out FILE writes: 2.5 times as fast as "
            "cutting by "
            "samples alone, 20 % faster than --strategy owt, the best of those with a name.");
}

TEST(PlanAdvice, SaysWhereCuttingBySamplesCannotBe) {
  EXPECT_EQ(plan_advice(plan_beside(never, never, never), 4, "s.json"),
            "Train with --ranks 4 --strategy s.json: cutting by samples alone is impossible for this net and "
            "batch.");
  plan::Plan plan = plan_beside(1, 1, 1);
  plan.memory_limit = {100};
  for (plan::Assignment& baseline : plan.baselines) baseline.memory = {101};
  EXPECT_EQ(plan_advice(plan, 4, "s.json"),
            "Train with --ranks 4 --strategy s.json: cutting by samples alone does not fit in the devices' "
            "memory.");
  plan.baselines[2].memory = {100};
  EXPECT_EQ(plan_advice(plan, 4, "s.json"),
            "Train with --ranks 4 --strategy owt: cutting by samples alone does not fit in the devices' "
            "memory, and "
            "as fast as this plan.");
}

// What a rank does in an iteration of 1 s.
struct RankShares {
  double computing = 0, exposed = 0, waiting = 0;
};

RunReport report_of(const std::vector<RankShares>& ranks, bool simulated) {
  RunReport report;
  report.simulated = simulated;
  report.ranks = static_cast<int>(ranks.size());
  report.step = {simulated ? 1.0 : 2.0};  // the median may be another than what is drawn
  if (!simulated) report.drawn = {.number = 3, .count = 5, .step = {1}, .lower = {1}, .upper = {2}};
  for (int rank = 0; rank < report.ranks; ++rank) {
    const RankShares& of = ranks[static_cast<size_t>(rank)];
    const auto add = [&](Lane lane, const char* category, double seconds, bool waits) {
      report.slices.push_back({.rank = rank, .lane = lane, .category = category, .end = {seconds}});
      if (waits) report.slices.back().exposed = {{{0}, {seconds}}};
    };
    add(Lane::compute, "forward", of.computing, false);
    add(Lane::communication, "allreduce", of.exposed, true);
    add(Lane::communication, "load", of.waiting, true);
  }
  return report;
}

std::string simulated(const std::vector<RankShares>& ranks) { return run_advice(report_of(ranks, true)); }
std::string measured(const std::vector<RankShares>& ranks) { return run_advice(report_of(ranks, false)); }

TEST(RunAdvice, ComputingLimits) {
  EXPECT_EQ(simulated({{0.97}, {0.99}}),
            "Computing takes 98 % of the iteration: faster or more devices help, a faster network does not.");
  EXPECT_EQ(simulated({{0.92}, {0.92}}),
            "Computing takes 92 % of the iteration: faster or more devices help, a faster network little.");
  EXPECT_EQ(measured({{0.9}}),
            "Computing takes 90 % of the iteration drawn below: faster or more devices help.");
}

TEST(RunAdvice, CommunicationLimits) {
  EXPECT_EQ(
      measured({{0.69, 0.3}, {0.66, 0.32}}),
      "Communication that nothing hides takes 31 % of the iteration drawn below: a faster network or another "
      "strategy helps.");
  // Where a simulated rank does not compute, it waits for others.
  EXPECT_EQ(
      simulated({{0.6, 0.3}, {0.6, 0.1}}),
      "Communication that nothing hides takes 40 % of the iteration: a faster network or another strategy "
      "helps.");
}

TEST(RunAdvice, BatchesOrStartingStepsLimit) {
  EXPECT_EQ(
      measured({{0.55, 0, 0.4}}),
      "Waiting for batches takes 40 % of the iteration drawn below, though they lie in memory: this net "
      "computes little for its data, and more ranks, which share the copying, help.");
  EXPECT_EQ(
      measured({{0.5, 0.25, 0.2}, {0.5, 0.25, 0.2}}),
      "Communication that nothing hides takes 25 % of the iteration drawn below: a faster network or another "
      "strategy helps.");
  EXPECT_EQ(
      measured({{0.7, 0.02}, {0.7, 0.02}}),
      "28 % of the iteration drawn below lies between its steps, neither computing nor waiting: steps are "
      "short, and a larger batch helps.");
}

TEST(RunAdvice, RanksAreUnequal) {
  EXPECT_EQ(
      measured({{0.5, 0.4}, {0.9, 0.02}}),
      "Rank 1 computes for 90 % of the iteration drawn below, the ranks for 70 % on average: a strategy that "
      "shares the work more evenly may help, a faster network hardly.");
  EXPECT_EQ(simulated({{0.9}, {0.005}, {0}}),
            "Use fewer ranks: 2 of 3 compute next to nothing in the iteration.");
  // Messages take far more than what one rank computes beyond the mean.
  EXPECT_EQ(
      measured({{0.1, 0.8}, {0.35, 0.6}}),
      "Communication that nothing hides takes 70 % of the iteration drawn below: a faster network or another "
      "strategy helps.");
}

}  // namespace
}  // namespace cortado
