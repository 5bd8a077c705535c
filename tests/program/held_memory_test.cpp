// What a rank has in memory while it trains.
#include "cortado/program/held_memory.h"

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using testing::facts_of;
using testing::lower_job;
using testing::NetBuilder;

// A weight of 144 floats, 576 bytes, and a bias of 4, which begins and ends on a cache line: 64 bytes.
constexpr int64_t weight = 576, bias = 64;

class HeldMemoryOf : public ::testing::Test {
 protected:
  HeldMemory held(const Degrees& degrees, int history, GradientSync sync = GradientSync::allreduce) const {
    NodeStrategies strategies = all(net_, degrees);
    strategies[net_.node("a")].sync = sync;
    return held_memory(lower_job(net_, strategies, degrees.product())[0], net_, history);
  }
  const Network net_ = NetBuilder().conv("a", "data").loss("a", "data").build();
};

TEST_F(HeldMemoryOf, OneRankIsTheWholeNet) {
  const HeldMemory held = this->held({}, 2);
  EXPECT_EQ(held.parameters.count, weight + bias);
  EXPECT_EQ(held.gradients.count, weight + bias);
  EXPECT_EQ(held.history.count, 2 * (weight + bias));
  EXPECT_EQ(held.arena, lower(net_, facts_of).arena);
  EXPECT_EQ(held.total().count, held.arena.count + 4 * (weight + bias));
  EXPECT_EQ(this->held({}, 0).history, Bytes{});
}

TEST_F(HeldMemoryOf, ReplicasHoldAllAndSlicesTheirPart) {
  EXPECT_EQ(held({.n = 2}, 1).parameters.count, weight + bias);
  EXPECT_EQ(held({.n = 2}, 1).history.count, weight + bias);
  EXPECT_EQ(held({.c = 2}, 1).parameters.count, 320 + 64);  // 288 bytes of weights
}

// An owner keeps the history of its share alone.
TEST_F(HeldMemoryOf, OwnersHoldTheHistoryOfTheirShare) {
  const HeldMemory held = this->held({.n = 2}, 1, GradientSync::owner);
  EXPECT_EQ(held.parameters.count, weight + bias);
  EXPECT_EQ(held.gradients.count, weight + bias);
  EXPECT_EQ(held.history.count, 320 + 64);
}

TEST_F(HeldMemoryOf, KernelsMayPadTheirWeights) {
  const TaskOracle padding = [](const Task& task) {
    auto facts = facts_of(task);
    if (task.layer().type() == "Convolution") facts->parameter_elements = {200, 0};  // 0: no padding
    return facts;
  };
  const HeldMemory held = held_memory(lower(net_, padding), net_, 1);
  EXPECT_EQ(held.parameters.count, 832 + bias);
  EXPECT_EQ(held.gradients.count, 832 + bias);
  EXPECT_EQ(held.history.count, 832 + bias);
}

// Gradients that pass lie in the arena, on one rank.
TEST_F(HeldMemoryOf, PassingGradientsAreInTheArena) {
  const LowerOptions passing{.passing_gradients = true, .after_pass = {}};
  const HeldMemory held = held_memory(lower(net_, facts_of, passing), net_, 1);
  EXPECT_EQ(held.gradients, Bytes{});
  EXPECT_LT(held.total(), held_memory(lower(net_, facts_of), net_, 1).total());
  LowerOptions of_two = passing;
  of_two.rank = 1;
  const Program two = lower(net_, place(net_, all(net_, {.n = 2}), 2), facts_of, of_two);
  EXPECT_EQ(held_memory(two, net_, 1).gradients.count, weight + bias);
}

TEST_F(HeldMemoryOf, ARankWithoutTheLayerHoldsNone) {
  const NodeStrategies first = testing::whole(net_).strategies;
  const auto programs = lower_job(net_, first, 2);
  EXPECT_EQ(held_memory(programs[1], net_, 1).parameters, Bytes{});
  EXPECT_EQ(held_memory(programs[1], net_, 1).history, Bytes{});
}

TEST(HeldMemoryOfATestNet, HasParametersWithoutGradients) {
  const Network net = NetBuilder().conv("a", "data").loss("a", "data").build(Phase::test);
  const HeldMemory held = held_memory(lower(net, facts_of), net, 1);
  EXPECT_EQ(held.parameters.count, weight + bias);
  EXPECT_EQ(held.gradients, Bytes{});
  EXPECT_EQ(held.history, Bytes{});
}

}  // namespace
}  // namespace cortado
