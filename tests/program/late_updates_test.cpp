// The pass "delay updates": updates of the iteration before, and sums that are still under way.
#include <fmt/ranges.h>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using testing::Cutting;
using ::testing::HasSubstr;
using testing::NetBuilder;
using ::testing::Not;
using testing::text_of;
using testing::texts_of;

std::string delayed(const Network& net, const Cutting& cutting, bool late = true) {
  Program program = testing::with_backward(net, cutting);
  chunk_gradients(program, net, parse_chunks("layer", "test"));
  if (late) delay_updates(program);
  return fmt::format("{}\n", fmt::join(texts_of(net, program), "\n"));
}

Network three_convolutions() {
  return NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
}

TEST(DelayUpdates, UpdatesBeforeTheFirstUse) {
  const Network net =
      NetBuilder().conv("a", "data", "s").conv("b", "a", "s").conv("c", "b").loss("c", "data").build();
  EXPECT_THAT(delayed(net, {all(net, {.n = 2}), 2}),
              HasSubstr("late update 0\nlate update 1\nforward a\nforward b\nlate update 2\nlate update 3\n"
                        "forward c\nforward loss\n"));
}

// In a job updates wait for their layer: they are computed while its inputs are under way.
TEST(DelayUpdates, FillTheWaitForInputs) {
  const Network net = three_convolutions();
  EXPECT_THAT(delayed(net, {all(net, {.c = 2}), 2}),
              HasSubstr("allgather to b\nlate update 2\nlate update 3\nforward b\n"));
  EXPECT_THAT(delayed(net, {all(net, {.c = 2}), 2}, false), HasSubstr("allgather to b\nforward b\n"));
}

TEST(DelayUpdates, MovesNothingOnOneRank) {
  const Network net = three_convolutions();
  EXPECT_EQ(delayed(net, testing::whole(net)), delayed(net, testing::whole(net), false));
}

// Other ranks wait for what an owner has updated.
TEST(DelayUpdates, LeavesUpdatesOfOwnersAtTheEnd) {
  const Network net = three_convolutions();
  NodeStrategies strategies = all(net, {.n = 2});
  strategies[net.node("b")].sync = GradientSync::owner;
  EXPECT_THAT(delayed(net, {strategies, 2}),
              HasSubstr("update 2\ncarried gather-parameter 2\nupdate 3\ncarried gather-parameter 3\n"));
  EXPECT_THAT(delayed(net, {strategies, 2}), Not(HasSubstr("late update 2")));
}

// Lee et al. 2017, Algorithm 2: what the whole gradient of b is computed of is gathered in both passes, and
// it is computed in the next iteration, before b is used.
TEST(DelayUpdates, ComputesWholeGradientsInTheNextIteration) {
  const Network net = three_convolutions();
  NodeStrategies strategies = all(net, {.n = 2});
  strategies[net.node("b")].sync = GradientSync::replicate;
  const std::string late = delayed(net, {strategies, 2}), at_once = delayed(net, {strategies, 2}, false);
  EXPECT_THAT(late, HasSubstr("late update 0\nlate update 1\nforward a\nlate backward-weights b of all\n"
                              "late update 2\nlate update 3\nforward b\ncarried allgather to b\n"));
  EXPECT_THAT(late,
              HasSubstr("carried sum-gradient 4 5\nbackward c\ncarried allgather to b of all\nbackward b\n"));
  EXPECT_THAT(at_once, HasSubstr("sum-gradient 0 1\nbackward-weights b of all\n"));
  EXPECT_THAT(at_once, Not(HasSubstr("sum-gradient 2")));
}

bool uses(const Program& program, const Step& step, ParameterIndex parameter) {
  if (step.late || step.lane != Lane::compute || !step.work()) return false;
  const auto& parameters = program.works[step.work()].parameters;
  return std::ranges::find(parameters, parameter) != parameters.end();
}
// Forward steps before `end` that use the parameter.
auto uses_before(const Program& program, StepIndex end, ParameterIndex parameter) {
  return std::count_if(program.steps.begin(), program.steps.begin() + end.value(),
                       [&](const Step& step) { return uses(program, step, parameter); });
}

// True where the whole gradient is computed late: its inputs may be overwritten before the parameter is used.
bool computed_late(const Program& program, ParameterIndex parameter) {
  return std::ranges::any_of(program.steps, [&](const Step& step) {
    if (!step.late || !step.work()) return false;
    const auto& parameters = program.works[step.work()].parameters;
    return std::ranges::find(parameters, parameter) != parameters.end();
  });
}

// Each update of a random job comes right before the first use of its parameter: no use before it, and
// nothing but late steps between them. All other steps keep their order.
TEST(DelayUpdates, ComeRightBeforeTheFirstUseInRandomJobs) {
  int late = 0;
  testing::for_random_programs(100, [&](const Network& net, const Program& whole, uint32_t) {
    Program program = whole;
    delay_updates(program);
    std::vector<Step> punctual;
    for (StepIndex s : indices(program.steps)) {
      const Step& step = program.steps[s];
      if (!step.late) punctual.push_back(step);
      const auto* update = step.as<steps::Update>();
      if (!update || !step.late) continue;
      ++late;
      EXPECT_EQ(uses_before(program, s, update->parameter), 0);
      StepIndex next = s;
      while (next.value() < program.forward_end && program.steps[next].late) ++next;
      const bool used_next =
          next.value() == program.forward_end || uses(program, program.steps[next], update->parameter);
      EXPECT_TRUE(used_next || computed_late(program, update->parameter)) << text_of(net, program, step);
    }
    EXPECT_EQ(program.steps.size() - punctual.size(),
              static_cast<size_t>(program.forward_end - whole.forward_end));
    auto kept = whole.steps.begin();
    for (const Step& step : punctual) {
      while (kept != whole.steps.end() && kept->action.index() != step.action.index()) ++kept;
      ASSERT_NE(kept, whole.steps.end()) << "out of order: " << text_of(net, program, step);
      ++kept;
    }
  });
  EXPECT_GT(late, 200);
}

TEST(DelayUpdates, CarriesSumsAndWhatOwnersSend) {
  testing::for_random_programs(40, [](const Network&, const Program& whole, uint32_t) {
    Program program = whole;
    delay_updates(program);
    for (const Step& step : program.steps) {
      const bool may_wait = step.is<steps::SumGradient>() || step.is<steps::GatherParameter>();
      EXPECT_TRUE(step.carried == may_wait || step.is<steps::Exchange>()) << name_of(step);
    }
  });
}

}  // namespace
}  // namespace cortado
