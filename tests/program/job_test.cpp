// Programs of all ranks of a job together.

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using testing::lower_job;
using testing::NetBuilder;

// lower() verifies each program, verify_job() all together.
TEST(Job, LawsHoldOnRandomNetsUnderRandomStrategies) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    for (int ranks : {1, 2, 3, 4, 6, 8}) {
      SCOPED_TRACE(fmt::format("seed {}, {} ranks", seed, ranks));
      const Network net = testing::random_net(seed);
      const Strategy strategy = random_strategy(seed, net, ranks);
      const NodeStrategies strategies = resolve(strategy, net, ranks, "random");
      std::vector<Program> programs;
      ASSERT_NO_THROW(programs = lower_job(net, strategies, ranks, seed % 3 == 0, strategy.schedule));
      ASSERT_NO_THROW(verify_job(programs));
    }
  }
}

int64_t bytes_received(const Program& program) {
  int64_t floats = 0;
  for (const Step& step : program.steps) {
    const auto* exchange = step.as<steps::Exchange>();
    if (!exchange) continue;
    const Movement& movement = program.works[exchange->work].movement;
    for (const auto& part : exchange->backward ? movement.sends : movement.receives)
      floats += part.box.shape().size();
  }
  return floats * static_cast<int64_t>(sizeof(float));
}

TEST(Job, UpdatesAreLateWhereTheScheduleSaysSo) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  for (const bool late : {false, true}) {
    for (const Program& program : lower_job(net, all(net, {.n = 2}), 2, false, {.late_updates = late})) {
      EXPECT_EQ(std::ranges::any_of(program.steps, &Step::late), late);
      EXPECT_EQ(std::ranges::any_of(program.steps, &Step::carried), late);
    }
  }
}

TEST(Job, EqualCutsBySampleMoveNothing) {
  const Network net = NetBuilder().conv("a", "data").relu("a").conv("b", "a").build();
  for (const Program& program : lower_job(net, all(net, {.n = 2}), 2)) {
    for (const Step& step : program.steps) {
      if (!step.is<steps::Exchange>()) continue;
      EXPECT_TRUE(program.works[step.work()].nodes.empty());  // the report
    }
  }
}

// Two 3x3 convolutions over 2x4x6x6 tensors cut into two bands of rows: the second needs one row of the
// first's output from the neighbour, and gives the gradient of one row back.
TEST(Job, ARankReceivesItsHaloAndNothingElse) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  NodeStrategies strategies = all(net, {.h = 2});
  strategies[net.node("loss")] = {};
  const auto programs = lower_job(net, strategies, 2);
  const int64_t row = 2 * 4 * 6 * 4;
  // Forward: a and b, one row each; backward: the same; c's half for the loss on rank 0 and its gradient
  // back.
  const int64_t halves = 3 * row, loss = 4;
  EXPECT_EQ(bytes_received(programs[0]), 4 * row + halves);
  EXPECT_EQ(bytes_received(programs[1]), 4 * row + halves + loss);
}

TEST(Job, GradientsAreSummedOverReplicasOnly) {
  const Network net = NetBuilder().conv("a", "data").loss("a", "data").build();
  const NodeStrategies strategies = all(net, {.n = 2});
  for (const Program& program : lower_job(net, strategies, 2)) {
    size_t sums = 0;
    for (const Step& step : program.steps) {
      if (!step.is<steps::SumGradient>()) continue;
      sums += step.parameters().size();
      EXPECT_EQ(step.group().ranks(), (std::vector<int>{0, 1}));
    }
    EXPECT_EQ(sums, 2u);  // weight and bias
  }
}

}  // namespace
}  // namespace cortado
