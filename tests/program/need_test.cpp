// The pass "find needs": which compute step waits for a message first.
#include <random>
#include <set>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using testing::HandMade;
using testing::lower_job;
using testing::NetBuilder;
using testing::step_of;

// What the next iteration needs first is under way last, and goes first.
TEST(FindNeeds, GradientsAreNeededByTheirUpdatesInTheNextIteration) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  NodeStrategies strategies = all(net, {.n = 2});
  strategies[net.node("b")] = testing::cut_by({.c = 2});
  const Program program = lower_job(net, strategies, 2, false, {.chunks = parse_chunks("layer", "test")})[0];
  const int end = static_cast<int>(program.steps.size());
  const auto place = [&](const char* text) { return step_of(net, program, text).value(); };
  const auto needed = [&](const char* text) { return program.steps[step_of(net, program, text)].needed; };
  EXPECT_EQ(needed("allgather to b"), place("forward b"));
  EXPECT_EQ(needed("carried sum-gradient 0 1"), end + place("late update 0"));
  EXPECT_EQ(needed("carried sum-gradient 4 5"), end + place("late update 4"));
  EXPECT_LT(place("carried sum-gradient 4 5"), place("carried sum-gradient 0 1"));
  EXPECT_LT(needed("carried sum-gradient 0 1"), needed("carried sum-gradient 4 5"));
}

// 0 and 1 are messages, 2 computes, 3 is a message, 4 computes.
TEST(FindNeeds, AMessageNeedsAnotherWhenItIsNeededItself) {
  HandMade made;
  for (const bool computes : {false, false, true, false, true})
    computes ? made.compute({}, {}) : made.message({}, {});
  const auto step = [&](int s) -> Step& { return made.program.steps[StepIndex(s)]; };
  step(3).waits = {StepIndex(0)};
  step(4).waits = {StepIndex(3)};
  find_needs(made.program);
  EXPECT_EQ(step(3).needed, 4);
  EXPECT_EQ(step(0).needed, 4);
  EXPECT_EQ(step(1).needed, 5);  // nobody waits: when the iteration ends
  step(2).waits = {StepIndex(0), StepIndex(1)};
  find_needs(made.program);
  EXPECT_EQ(step(0).needed, 2);
  EXPECT_EQ(step(1).needed, 2);
  step(3).carried = true;
  step(4).waits = {};
  step(2).waits_before = {StepIndex(3)};
  find_needs(made.program);
  EXPECT_EQ(step(3).needed, 5 + 2);
  EXPECT_EQ(step(0).needed, 2);  // sooner than in the next iteration
}

// A step of this iteration or the next one: the second counts on from the last of the first.
class Waiting {
 public:
  explicit Waiting(const Program& program)
      : program_(program), count_(static_cast<int>(program.steps.size())) {}

  // The first compute step that waits for `step`, also by way of messages; carried ones end in the next
  // iteration.
  int first_computing(int step) {
    std::set<int> reached;
    reach(step, reached);
    const bool carried = program_.steps[StepIndex(step)].carried;
    int first = carried ? 2 * count_ : count_;
    for (int other : reached) first = std::min(first, other);
    return first;
  }

 private:
  void reach(int step, std::set<int>& reached) {
    for (int s = 0; s < count_; ++s) {
      const Step& other = program_.steps[StepIndex(s)];
      const StepIndex own(step % count_);
      if (std::ranges::find(other.waits, own) != other.waits.end()) take(step - own.value() + s, reached);
      if (std::ranges::find(other.waits_before, own) != other.waits_before.end())
        take(step - own.value() + count_ + s, reached);
    }
  }
  void take(int step, std::set<int>& reached) {
    if (step >= 2 * count_) return;
    const Step& taken = program_.steps[StepIndex(step % count_)];
    if (taken.lane == Lane::compute)
      reached.insert(step);
    else
      reach(step, reached);
  }

  const Program& program_;
  const int count_;
};

TEST(FindNeeds, FindsWhatABlindSearchFinds) {
  int next_iteration = 0;
  testing::for_random_programs(60, [&](const Network& net, const Program& whole, uint32_t) {
    Program program = whole;
    delay_updates(program);
    add_waits(program);
    find_needs(program);
    const int end = static_cast<int>(program.steps.size());
    for (int s = 0; s < end; ++s) {
      const Step& step = program.steps[StepIndex(s)];
      if (step.lane == Lane::compute) continue;
      EXPECT_EQ(step.needed, Waiting(program).first_computing(s)) << testing::text_of(net, program, step);
      if (step.needed > end) ++next_iteration;
    }
  });
  EXPECT_GT(next_iteration, 100);
}

}  // namespace
}  // namespace cortado
