#include "cortado/sim/iteration_parts.h"

#include <gtest/gtest.h>

#include "cortado/plan/plan_graph.h"

#include "tests/program/nets.h"
#include "tests/sim/jobs.h"

namespace cortado {
namespace {

IterationParts parts(const Network& net, const std::string& layers, const DeviceGraph& machine) {
  const Strategy strategy = parse_strategy(
      R"({"format": "cortado-strategy", "version": 1, "ranks": 2, "layers": )" + layers + "}", "test");
  return parts_of(simulate_job(net, resolve(strategy, net, 2, "test"), strategy.schedule,
                               AbsentMachine(machine).simulated()));
}

// Nets that send nothing but one kind of message.
TEST(IterationParts, AreWhatAnIterationWaitsFor) {
  const DeviceGraph machine = testing::machine_of(1, 2);
  testing::NetBuilder builder;
  const Network chain = builder.conv("a", "data").conv("b", "a").build(Phase::test);
  const IterationParts moved = parts(chain, R"({"a": {"c": 2}, "b": {"c": 2}})", machine);
  EXPECT_GT(moved.exchange.count, 0);
  EXPECT_EQ(moved.sync.count, 0);
  const Network net = testing::random_net(3);
  const IterationParts cut = parts(net, R"({"*": {"n": 2}})", testing::machine_of(2, 1));
  EXPECT_GT(cut.sync.count, 0);
  for (const IterationParts& one : {moved, cut}) EXPECT_GT(one.compute.count, 0);
}

TEST(IterationParts, AddUpToTheIteration) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = testing::random_net(seed);
    const DeviceGraph machine = testing::machine_of(2, 2);
    const Strategy strategy = built_in_strategy("data", net, 4);
    const SimulatedJob job = simulate_job(net, resolve(strategy, net, 4, "data"), strategy.schedule,
                                          AbsentMachine(machine).simulated());
    const IterationParts found = parts_of(job);
    EXPECT_NEAR(found.total().count, job.simulation.iteration.count, 1e-9 * found.total().count);
    EXPECT_EQ(found.compute, *std::ranges::max_element(job.simulation.computing));
  }
}

}  // namespace
}  // namespace cortado
