// The pass "halve halos": messages and layers in two halves of the samples.
#include <map>

#include "cortado/program/volume.h"

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::facts_of;
using testing::lower_job;
using testing::NetBuilder;
using ::testing::Not;
using testing::texts_of;
using testing::with_backward;

Network two_convolutions() { return NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build(); }
NodeStrategies by(const Network& net, const Degrees& degrees) {
  NodeStrategies strategies = all(net, degrees);
  strategies[net.node("loss")] = {};
  return strategies;
}

// The layers and messages that are done by halves, in order.
std::vector<std::string> halved(const Network& net, const NodeStrategies& strategies, int ranks,
                                const TaskOracle& oracle = facts_of) {
  Program program = with_backward(net, {strategies, ranks}, {.oracle = oracle});
  halve_halos(program, oracle);
  std::vector<std::string> names;
  for (const Step& step : program.steps)
    if (step.work() && program.works[step.work()].part.whole)
      names.push_back(name_of(program.works[step.work()], net));
  return names;
}

// conv a, halo, conv b: half of a travels while the other half is computed, half of b is computed meanwhile.
TEST(HalveHalos, HalfTravelsWhileTheOtherIsComputed) {
  const Network net = two_convolutions();
  EXPECT_THAT(halved(net, by(net, {.h = 2}), 2),
              ElementsAre("a 1/2", "to b 1/2", "a 2/2", "to b 2/2", "b 1/2", "b 2/2"));
}

TEST(HalveHalos, AHalfWaitsForItsHalfAlone) {
  const Network net = two_convolutions();
  const auto whole = lower_job(net, by(net, {.h = 2}), 2),
             halves = lower_job(net, by(net, {.h = 2}), 2, false, {.halves = true});
  ASSERT_NO_THROW(verify_job(halves));
  for (size_t rank : {0, 1}) {
    const Program& program = halves[rank];
    const auto step = [&](const char* text) { return testing::step_of(net, program, text); };
    const auto waits = [&](const char* text) { return program.steps[step(text)].waits; };
    EXPECT_THAT(waits("exchange to b 1/2"), Contains(step("forward a 1/2")));
    EXPECT_THAT(waits("exchange to b 1/2"), Not(Contains(step("forward a 2/2"))));
    EXPECT_THAT(waits("forward b 1/2"), Contains(step("exchange to b 1/2")));
    EXPECT_THAT(waits("forward b 1/2"), Not(Contains(step("exchange to b 2/2"))));
    EXPECT_THAT(waits("forward b 2/2"), Contains(step("exchange to b 2/2")));
    EXPECT_EQ(volumes_of(program).total(), volumes_of(whole[rank]).total());
    EXPECT_EQ(program.steps.size(), whole[rank].steps.size() + 3);
  }
}

// What is not between ranks of the same samples, or what a kernel would not leave as the whole does.
TEST(HalveHalos, LeavesWholeWhatHasNoHalves) {
  const Network net = two_convolutions();
  EXPECT_THAT(halved(net, by(net, {.n = 2}), 2), ElementsAre());          // one sample a rank
  EXPECT_THAT(halved(net, by(net, {.c = 2}), 2), ElementsAre());          // an allgather
  EXPECT_THAT(halved(net, by(net, {.n = 2, .h = 2}), 4), ElementsAre());  // one sample again
  const auto with = [&](auto&& change) {
    return halved(net, by(net, {.h = 2}), 2, [=](const Task& task) {
      auto facts = facts_of(task);
      change(task, *facts);
      return facts;
    });
  };
  const auto messages_alone = ElementsAre("to b 1/2", "to b 2/2");
  const auto samples = [](const Task& task) { return task.domain_box[0].size(); };
  EXPECT_THAT(with([&](const Task& task, TaskFacts& facts) {
                facts.parameter_order = samples(task) == 2 ? "whole" : "half";
              }),
              messages_alone);
  EXPECT_THAT(with([&](const Task& task, TaskFacts& facts) { facts.saved = {8 * samples(task)}; }),
              messages_alone);  // saved, but not sample after sample
  EXPECT_THAT(with([&](const Task&, TaskFacts& facts) {
                facts.saved = {8};
                facts.saved_by_samples = true;
              }),
              messages_alone);  // a half saves as much as the whole
  EXPECT_THAT(with([&](const Task& task, TaskFacts& facts) {
                facts.saved = {8 * samples(task)};
                facts.saved_by_samples = true;
              }),
              Contains("a 1/2"));
}

// Bytes of each buffer that forward steps write, in the order of memory.
std::map<BufferIndex, std::vector<std::pair<int64_t, int64_t>>> written(const Program& program) {
  std::map<BufferIndex, std::vector<std::pair<int64_t, int64_t>>> runs;
  for (StepIndex s(0); s.value() < program.forward_end; ++s) {
    for (const View& view : program.steps[s].writes) {
      const auto kind = program.buffers[view.buffer].kind;
      if (kind == Buffer::Kind::scratch || kind == Buffer::Kind::staging) continue;
      runs[view.buffer].emplace_back(view.bytes.begin, view.bytes.end);
    }
  }
  for (auto& [buffer, own] : runs) {
    std::ranges::sort(own);
    for (size_t i = 1; i < own.size();) {
      const bool joins = own[i - 1].second == own[i].first;
      if (joins) own[i - 1].second = own[i].second;
      joins ? static_cast<void>(own.erase(own.begin() + static_cast<std::ptrdiff_t>(i)))
            : static_cast<void>(++i);
    }
  }
  return runs;
}

// Halves of random jobs write what the whole steps would, each byte once; and the backward pass is the same.
TEST(HalveHalos, HalvesAreAllOfTheWhole) {
  int halves = 0;
  testing::for_random_programs(120, [&](const Network& net, const Program& whole, uint32_t) {
    Program program = whole;
    halve_halos(program, facts_of);
    EXPECT_EQ(written(program), written(whole));
    std::map<WorkIndex, int64_t> samples;  // of the parts, by whole work
    for (const Work& work : program.works) {
      if (!work.part.whole) continue;
      ++halves;
      samples[work.part.whole] +=
          work.kind == Work::Kind::compute
              ? work.task.domain_box[0].size()
              : (*(work.movement.from ? work.movement.from : work.movement.to))[0].size();
    }
    for (const auto& [index, sum] : samples) EXPECT_EQ(sum, 2) << name_of(program.works[index], net);
    const auto before = texts_of(net, whole), after = texts_of(net, program);
    EXPECT_EQ(std::vector(after.begin() + program.forward_end, after.end()),
              std::vector(before.begin() + whole.forward_end, before.end()));
  });
  EXPECT_GT(halves, 20);
}

}  // namespace
}  // namespace cortado
