// The pass "plan buffers": how long buffers live, and where.
#include <random>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::HandMade;
using testing::NetBuilder;

// Sizes are multiples of this: smaller gaps do not count.
constexpr int64_t unit = 1 << 20;

bool live_together(const Buffer& one, const Buffer& other) {
  return one.first_step <= other.last_step && other.first_step <= one.last_step;
}

bool meet(const Buffer::Life& one, Bytes size, const Buffer::Life& other, Bytes other_size) {
  return one.first <= other.last && other.first <= one.last && one.offset < other.offset + other_size.count &&
         other.offset < one.offset + size.count;
}

// Buffers that nobody touches, and batches, have no memory; others lie in the arena, none over another that
// lives at the same time.
void expect_disjoint(const Program& program) {
  for (BufferIndex i : indices(program.buffers)) {
    const Buffer& one = program.buffers[i];
    ASSERT_EQ(one.offset >= 0, one.first_step && one.kind != Buffer::Kind::batch) << one.name;
    if (one.offset < 0) continue;
    for (const Buffer::Life& life : one.lives()) {
      EXPECT_EQ(life.offset % 64, 0);
      EXPECT_LE(life.offset + one.size.count, program.arena.count);
      for (BufferIndex j(0); j < i; ++j) {
        const Buffer& other = program.buffers[j];
        for (const Buffer::Life& its : other.lives())
          EXPECT_FALSE(its.offset >= 0 && meet(life, one.size, its, other.size))
              << one.name << " and " << other.name;
      }
    }
  }
}

class PlanBuffers : public ::testing::Test {
 protected:
  void plan() { plan_buffers(made_.program, made_.net, false); }
  const Buffer& at(const View& view) const { return made_.program.buffers[view.buffer]; }
  void expect_life(const View& view, int first, int last) const {
    EXPECT_EQ(at(view).first_step.value(), first) << at(view).name;
    EXPECT_EQ(at(view).last_step.value(), last) << at(view).name;
  }
  HandMade made_;
};

TEST_F(PlanBuffers, ABufferLivesFromTheFirstTouchToTheLast) {
  const View a = made_.buffer(64), b = made_.buffer(64), untouched = made_.buffer(64);
  made_.compute({}, {a});
  made_.compute({a}, {b});
  made_.compute({b}, {});
  plan();
  expect_life(a, 0, 1);
  expect_life(b, 1, 2);
  expect_life(untouched, -1, -1);
  EXPECT_EQ(made_.program.arena.count, 128);
}

// Four in a row take turns in the memory of two.
TEST_F(PlanBuffers, MemoryIsUsedAgain) {
  View last = made_.buffer(100);
  made_.compute({}, {last});
  for (int i = 0; i < 3; ++i) {
    const View next = made_.buffer(100);
    made_.compute({last}, {next});
    last = next;
  }
  plan();
  EXPECT_EQ(made_.program.arena.count, 2 * 128);
  expect_disjoint(made_.program);
}

// No compute step before the one that waits for a message has to wait for it.
TEST_F(PlanBuffers, WhatAMessageTouchesLivesUntilTheNextWaiting) {
  const View a = made_.buffer(64), b = made_.buffer(64);
  made_.compute({}, {a});
  made_.message({a}, {b});
  made_.compute({}, {});
  made_.compute({}, {});
  made_.compute({b}, {}).waits = {StepIndex(1)};
  plan();
  expect_life(a, 0, 3);
  expect_life(b, 1, 4);
}

TEST_F(PlanBuffers, WhatTwoIterationsTouchLivesThroughout) {
  const View carried = made_.buffer(64), late = made_.buffer(64), other = made_.buffer(64);
  made_.compute({late}, {}).late = true;
  made_.compute({}, {other});
  made_.compute({}, {late});
  made_.message({late}, {carried}).carried = true;
  plan();
  expect_life(carried, 0, 4);
  expect_life(late, 0, 4);
  expect_life(other, 1, 1);
  expect_disjoint(made_.program);
}

// `kept` and `last` leave the first life of `again` one half of the memory, and the second the other.
TEST_F(PlanBuffers, EachLifeLiesWhereItFits) {
  const View again = made_.buffer(unit), kept = made_.buffer(unit), last = made_.buffer(unit);
  made_.compute({}, {again});
  made_.compute({again}, {kept});
  made_.compute({kept}, {last});
  made_.compute({kept, last}, {});
  made_.compute({last}, {again}).action = steps::Compute{.again = true};
  made_.compute({again}, {});
  plan();
  EXPECT_EQ(made_.program.arena.count, 2 * unit);
  EXPECT_EQ(at(again).lives().size(), 2u);
  EXPECT_NE(at(again).offset, at(again).offset_again);
  EXPECT_EQ(at(again).offset_at(StepIndex(1)), at(again).offset);
  EXPECT_EQ(at(again).offset_at(StepIndex(5)), at(again).offset_again);
  expect_disjoint(made_.program);
}

TEST_F(PlanBuffers, BatchesLieElsewhere) {
  const View batch = made_.buffer(64, Buffer::Kind::batch), empty = made_.buffer(0);
  made_.compute({batch}, {empty});
  plan();
  EXPECT_EQ(at(batch).offset, -1);
  EXPECT_EQ(made_.program.arena.count, 64);  // a place even for nothing
}

// Where the arena would end, were the largest buffers placed first.
Bytes largest_first(const Program& program) {
  std::vector<Buffer> order, placed;
  for (const Buffer& buffer : program.buffers)
    if (buffer.first_step) order.push_back(buffer);
  std::ranges::stable_sort(order, [](const Buffer& a, const Buffer& b) { return a.size > b.size; });
  Bytes end;
  for (Buffer& buffer : order) {
    const auto meets = [&](const Buffer& other) {
      return live_together(buffer, other) && buffer.offset < other.offset + other.size.count &&
             other.offset < buffer.offset + buffer.size.count;
    };
    for (buffer.offset = 0; std::ranges::any_of(placed, meets);) buffer.offset += unit;
    placed.push_back(buffer);
    end.count = std::max(end.count, buffer.offset + buffer.size.count);
  }
  return end;
}

// The largest first may leave gaps.
TEST(PlanBuffersOfManySizes, TakesTheOrderThatEndsFirst) {
  int better = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    HandMade made;
    std::mt19937 random(seed);
    auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    std::vector<View> views;
    for (int i = 0; i < 12; ++i) views.push_back(made.buffer(unit * pick(1, 8)));
    const auto any = [&] { return views[static_cast<size_t>(pick(0, 11))]; };
    for (int step = 0; step < 12; ++step) made.compute({any()}, {any()});
    plan_buffers(made.program, made.net, false);
    expect_disjoint(made.program);
    const Bytes largest = largest_first(made.program);
    EXPECT_LE(made.program.arena, largest);
    better += made.program.arena < largest;
  }
  EXPECT_GT(better, 0);
}

// Reported tensors are looked at after the iteration; with `keep` all of them, and their gradients.
TEST(PlanBuffersOfNets, KeepsWhatIsLookedAt) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "a").loss("b", "data").build();
  for (const bool keep : {false, true}) {
    Program program = testing::with_backward(net, testing::whole(net), {.keep = keep});
    add_waits(program);
    plan_buffers(program, net, keep);
    const StepIndex end = program.steps.end_index();
    const auto kept = [&](BufferIndex buffer) { return program.buffers[buffer].last_step == end; };
    EXPECT_TRUE(kept(program.tensor_buffer(net.tensor("loss"))));
    EXPECT_TRUE(kept(program.tensor_buffer(net.tensor("c"))));  // an output of the net
    EXPECT_EQ(kept(program.tensor_buffer(net.tensor("a"))), keep);
    EXPECT_EQ(kept(program.gradient_buffer(net.tensor("b"))), keep);
    expect_disjoint(program);
  }
}

// Random steps on random buffers: lives by the words of the pass, disjoint memory by comparing all pairs.
class RandomSteps {
 public:
  explicit RandomSteps(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 40; ++i) views_.push_back(made.buffer(pick(1, 1000)));
    for (StepIndex s(0); s.value() < 60; ++s) add(s);
  }

  HandMade made;

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  View any() { return views_[static_cast<size_t>(pick(0, 39))]; }
  void add(StepIndex s) {
    if (pick(0, 2) == 0) {
      made.message({any()}, {any()}).carried = pick(0, 9) == 0;
      messages_.push_back(s);
      return;
    }
    Step& step = made.compute({any(), any()}, {any()});
    if (!messages_.empty() && pick(0, 1) == 0) step.waits = {messages_.back()};
  }

  std::mt19937 random_;
  std::vector<View> views_;
  std::vector<StepIndex> messages_;
};

bool touches(const Step& step, BufferIndex buffer) {
  const auto is = [&](const View& view) { return view.buffer == buffer; };
  return std::ranges::any_of(step.reads, is) || std::ranges::any_of(step.writes, is);
}

// First and last step of a buffer's life.
std::pair<int, int> naive_life(const Program& program, BufferIndex buffer) {
  const int end = static_cast<int>(program.steps.size());
  std::pair<int, int> life{-1, -1};
  for (int s = 0; s < end; ++s) {
    const Step& step = program.steps[StepIndex(s)];
    if (!touches(step, buffer)) continue;
    if (step.carried) return {0, end};
    if (life.first < 0) life.first = s;
    life.second = std::max(life.second, s);
    if (step.lane == Lane::compute) continue;
    for (int waiting = s; waiting < end; ++waiting) {
      const auto& waits = program.steps[StepIndex(waiting)].waits;
      if (std::ranges::find(waits, StepIndex(s)) == waits.end()) continue;
      life.second = std::max(life.second, waiting - 1);
      break;
    }
  }
  return life;
}

TEST(PlanBuffersOfRandomSteps, HaveLivesOfTheirOwnAndDisjointMemory) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    HandMade made = std::move(RandomSteps(seed).made);
    Program& program = made.program;
    plan_buffers(program, made.net, false);
    expect_disjoint(program);
    Bytes all, most;
    for (BufferIndex b : indices(program.buffers)) {
      const Buffer& buffer = program.buffers[b];
      EXPECT_EQ(std::pair(buffer.first_step.value(), buffer.last_step.value()), naive_life(program, b));
      all += {(buffer.size.count + 63) / 64 * 64};
    }
    EXPECT_LT(program.arena, all);
  }
}

}  // namespace
}  // namespace cortado
