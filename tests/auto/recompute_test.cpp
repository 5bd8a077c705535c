// Limits of memory on machines that are not here.
#include "cortado/auto/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/auto/choose_on_machine.h"
#include "cortado/base/error.h"
#include "cortado/program/held_memory.h"

#include "tests/plan/zoo.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RecomputeOnMachine : public ::testing::Test {
 protected:
  // Of the rank that holds most.
  Bytes held(const Strategy& strategy) {
    AbsentMachine absent(machine_);
    Bytes most;
    for (const Program& program :
         simulate_job(net_, resolve(strategy, net_, 2, "test"), strategy.schedule, absent.simulated())
             .programs)
      most = std::max(most, held_memory(program, net_, 1).total());
    return most;
  }

  const Network net_ = testing::zoo_net("u-net", 2, {1, 64, 64}, {64, 64});
  const DeviceGraph machine_ = testing::ready_machine("layer-wise-p100", 2);
};

TEST_F(RecomputeOnMachine, KeepsCutsAndLimit) {
  const Strategy start = built_in_strategy("spatial", net_, 2);
  const Bytes before = held(start);
  // Parameters, their gradients and history are most of it.
  const Bytes limit{before.count * 97 / 100};
  Strategy strategy = start;
  const ScheduleChanges changes{.memory_limit = std::to_string(limit.count)};
  EXPECT_THAT(recompute_on_machine(changes, net_, machine_, strategy, as_option),
              StartsWith("recomputation: "));
  EXPECT_LE(held(strategy), limit);
  for (const auto& rule : start.rules) EXPECT_EQ(strategy.find(rule.pattern)->config, rule.layer.config);
  Strategy unchanged = start;
  EXPECT_EQ(recompute_on_machine({}, net_, machine_, unchanged, as_option), "");
  EXPECT_EQ(unchanged, start);
}

TEST_F(RecomputeOnMachine, APlanThatDoesNotFitFitsWithIt) {
  const auto with_batch = [&](int64_t) { return net_; };
  plan::PlanRequest request{.network = net_, .batch = 2, .with_batch = with_batch};
  const plan::Plan free = plan_recomputed(request, machine_, 1, true);
  EXPECT_EQ(free.recomputation, "");
  const Bytes all = held(free.strategy);
  request.options.memory = {all.count * 97 / 100};
  const plan::Plan plan = plan_recomputed(request, machine_, 1, true);
  EXPECT_THAT(plan.recomputation, HasSubstr("layers computed again"));
  EXPECT_LE(held(plan.strategy), request.options.memory);
}

TEST_F(RecomputeOnMachine, AFrontierHasWhatThePlansCutsTakeWithLess) {
  const auto with_batch = [&](int64_t) { return net_; };
  plan::PlanRequest request{.network = net_, .batch = 2, .with_batch = with_batch};
  request.options.frontier_points = 5;
  EXPECT_TRUE(plan_recomputed(request, machine_, 2, false).recompute_frontier.empty());
  const plan::Plan plan = plan_recomputed(request, machine_, 2, true);
  const auto& frontier = plan.recompute_frontier;
  ASSERT_GE(frontier.size(), 3u);
  EXPECT_EQ(frontier.back().memory, held(plan.strategy));
  EXPECT_EQ(frontier.back().layers, 0);
  EXPECT_EQ(frontier.back().added.count, 0);
  for (size_t i = 1; i < frontier.size(); ++i) {
    EXPECT_LT(frontier[i - 1].memory, frontier[i].memory);
    EXPECT_GE(frontier[i - 1].added, frontier[i].added);
    EXPECT_GT(frontier[i - 1].layers, 0);
    EXPECT_LE(frontier[i - 1].least_added, frontier[i - 1].added);
  }
}

TEST(PlanBySimulation, IsNoSlowerThanWhatItKnowsAndNothingBeatsItsBound) {
  const DeviceGraph machine = testing::ready_machine("layer-wise-p100", 4);
  AbsentMachine absent(machine);
  for (uint32_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = testing::random_net(seed);
    const auto seconds = simulated_seconds(net, absent.simulated());
    const plan::PlanRequest request{.network = net, .with_batch = [&](int64_t) { return net; }};
    const plan::Plan plan = plan_for(request, machine, 4, false, true);
    ASSERT_TRUE(plan.judged);
    EXPECT_DOUBLE_EQ(plan.judged->seconds.count, seconds(plan.strategy).count);
    const plan::Plan cheapest = plan_for(request, machine, 4, false, false);
    EXPECT_LE(plan.judged->seconds.count, seconds(cheapest.strategy).count * (1 + 1e-9));
    for (std::string_view name : built_in_strategies()) {
      const Seconds built_in = seconds(built_in_strategy(name, net, 4));
      EXPECT_LE(plan.judged->lower_bound.count, built_in.count * (1 + 1e-9)) << name;
    }
    EXPECT_LE(plan.judged->lower_bound.count, plan.judged->seconds.count * (1 + 1e-9));
  }
}

// Two towers of two convolutions where each task takes a millisecond: 12 on every device by samples, of which
// 5 are of the other tower (tests/tune/place_branches_test.cpp counts them).
TEST(PlanBySimulation, PutsBranchesSideBySide) {
  Node node;
  node.devices.assign(2, Device{.name = "",
                                .peak = {1e18},
                                .memory_bandwidth = {1e18},
                                .memory = {1 << 30},
                                .task_overhead = {1e-3}});
  node.links = {{.group = 2, .link = {{1e-9}, {1e18}}}};
  Machine figures;
  figures.name = "tasks";
  figures.nodes = {node};
  const DeviceGraph machine(figures);
  const Network net = testing::two_branches();
  const plan::PlanRequest request{.network = net, .with_batch = [&](int64_t) { return net; }};
  EXPECT_FALSE(plan_for(request, machine, 2, false, false).side_by_side);
  const plan::Plan plan = plan_for(request, machine, 2, false, true);
  ASSERT_TRUE(plan.side_by_side);
  EXPECT_NEAR(plan.side_by_side->before.count, 12e-3, 1e-6);
  EXPECT_NEAR(plan.judged->seconds.count, 7e-3, 1e-6);
  EXPECT_NEAR(plan.judged->lower_bound.count, 6e-3, 1e-6);
  EXPECT_EQ(plan.side_by_side->sets, 1);
  EXPECT_GE(plan.side_by_side->layers.size(), 2u);
  AbsentMachine absent(machine);
  EXPECT_EQ(simulated_seconds(net, absent.simulated())(plan.strategy), plan.judged->seconds);
  const ChosenOnMachine chosen = choose_on_machine("auto", net, machine);
  EXPECT_NEAR(simulated_seconds(net, absent.simulated())(chosen.strategy).count, 7e-3, 1e-6);
}

TEST(ScheduleChanges, RefuseWhatDoesNotGoTogether) {
  const auto refused = [](const ScheduleChanges& changes) {
    try {
      memory_limit_of(changes, as_option);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused({.recompute = "auto"}), HasSubstr("--memory-limit 2GiB"));
  EXPECT_THAT(refused({.recompute = "all", .memory_limit = "1GiB"}), HasSubstr("goes with --recompute auto"));
  EXPECT_THAT(refused({.memory_limit = "much"}), HasSubstr("'much' is no size"));
  EXPECT_EQ(refused({.recompute = "auto", .memory_limit = "1GiB"}), "");
}

}  // namespace
}  // namespace cortado
