// The passes "add waits" and "add memory waits": what a step may not begin before.
#include <bitset>
#include <map>
#include <unordered_set>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using ::testing::ElementsAre;
using testing::HandMade;
using testing::lower_job;
using testing::NetBuilder;

std::vector<int> values_of(const std::vector<StepIndex>& steps) {
  std::vector<int> values;
  for (StepIndex step : steps) values.push_back(step.value());
  return values;
}
std::vector<std::vector<int>> waits_of(const Program& program) {
  std::vector<std::vector<int>> waits;
  for (const Step& step : program.steps) waits.push_back(values_of(step.waits));
  return waits;
}

TEST(AddWaits, ReadersWaitForTheWriterAndWritersForReaders) {
  HandMade made;
  const View a = made.buffer(64), b = made.buffer(64), c = made.buffer(64);
  made.compute({}, {a});
  made.message({a}, {b});
  made.compute({b}, {c});
  made.compute({}, {a});  // the message has read it
  made.message({}, {b});  // the message has written, the compute step has read it
  made.compute({c}, {});  // its own lane
  made.program.forward_end = 6;
  add_waits(made.program);
  EXPECT_EQ(waits_of(made.program), (std::vector<std::vector<int>>{{}, {0}, {1}, {1}, {1, 2}, {}}));
}

TEST(AddWaits, PartsOfABufferThatDoNotOverlapWaitForNothing) {
  HandMade made;
  const View a = made.buffer(64);
  const View low{a.buffer, {0, 32}}, high{a.buffer, {32, 64}}, middle{a.buffer, {16, 48}};
  made.message({}, {low});
  made.compute({}, {high});
  made.compute({low}, {});
  made.message({middle}, {});
  made.program.forward_end = 4;
  add_waits(made.program);
  EXPECT_EQ(waits_of(made.program), (std::vector<std::vector<int>>{{}, {}, {0}, {0, 1}}));
}

// The barrier waits for all messages before it, but for carried ones, and the first message after it for it.
TEST(AddWaits, TheBarrierPartsThePasses) {
  HandMade made;
  for (int i = 0; i < 3; ++i) made.message({}, {}).carried = i == 1;
  made.compute({}, {});
  made.barrier();
  for (int i = 0; i < 2; ++i) made.message({}, {});
  add_waits(made.program);
  EXPECT_THAT(waits_of(made.program), ElementsAre(ElementsAre(), ElementsAre(), ElementsAre(), ElementsAre(),
                                                  ElementsAre(0, 2), ElementsAre(4), ElementsAre()));
}

TEST(AddWaits, CarriedStepsAreWaitedForInTheNextIteration) {
  HandMade made;
  const View a = made.buffer(64), b = made.buffer(64);
  made.compute({a}, {b});
  made.compute({b}, {});
  made.message({b}, {a}).carried = true;
  made.message({}, {b});
  made.program.forward_end = 4;
  add_waits(made.program);
  const auto& steps = made.program.steps;
  EXPECT_THAT(values_of(steps[StepIndex(0)].waits_before), ElementsAre(2));  // reads a, writes b
  EXPECT_THAT(values_of(steps[StepIndex(1)].waits_before), ElementsAre());   // follows step 0
  const auto waits = waits_of(made.program);
  EXPECT_THAT(waits[2], ElementsAre(0));
  EXPECT_THAT(waits[3], ElementsAre(0, 1, 2));
}

// b takes over a's memory, c lies beside it.
TEST(AddMemoryWaits, WhoTakesMemoryOverWaitsForWhoHadIt) {
  const auto waits = [](int64_t offset, int first_step) {
    HandMade made;
    const View a = made.buffer(64), b = made.buffer(64);
    made.compute({}, {a});
    made.message({a}, {});
    made.compute({}, {b});
    made.compute({b}, {});
    Buffer &former = made.program.buffers[a.buffer], &later = made.program.buffers[b.buffer];
    former.offset = 0;
    former.first_step = StepIndex(0);
    former.last_step = StepIndex(1);
    later.offset = offset;
    later.first_step = StepIndex(first_step);
    later.last_step = StepIndex(3);
    add_memory_waits(made.program);
    return waits_of(made.program);
  };
  using Waits = std::vector<std::vector<int>>;
  EXPECT_EQ(waits(0, 2), (Waits{{}, {}, {1}, {}}));
  EXPECT_EQ(waits(63, 2), (Waits{{}, {}, {1}, {}}));
  EXPECT_EQ(waits(64, 2), (Waits{{}, {}, {}, {}}));
  EXPECT_EQ(waits(-1, 2), (Waits{{}, {}, {}, {}}));  // it lies in a reader's memory
}

// Goes through every order in which the two lanes can begin and end the steps of two iterations. The compute
// lane runs one step at a time; messages begin in order and overlap. When a step begins, every step that
// comes before it and that must not run beside it has to have ended.
class Interleavings {
 public:
  explicit Interleavings(const Program& program) : program_(program), count_(program.steps.size()) {
    if (2 * count_ > States().size()) throw InternalError("too many steps to interleave");
    for (const Step& step : program.steps) touched_.push_back(touched(step));
  }

  // Two steps that can run in the wrong order, or "stuck" where nothing can go on; "" where all goes well.
  std::string fault() {
    std::vector<State> open{State{}};
    while (!open.empty() && fault_.empty()) {
      const State state = open.back();
      open.pop_back();
      if (!seen_.insert(state).second) continue;
      const auto next = nexts(state);
      if (next.empty() && state.ended.count() < 2 * count_) fault_ = "stuck";
      open.insert(open.end(), next.begin(), next.end());
    }
    return fault_;
  }

 private:
  using States = std::bitset<128>;
  struct State {
    States begun, ended;
    bool operator==(const State&) const = default;
  };
  struct Hash {
    size_t operator()(const State& state) const {
      return std::hash<States>()(state.begun) * 31 + std::hash<States>()(state.ended);
    }
  };
  // Parameters and their gradients, by name, and whether they are written.
  using Touched = std::map<std::string, bool>;

  const Step& step(size_t s) const { return program_.steps[StepIndex(s % count_)]; }

  Touched touched(const Step& step) const {
    Touched touched;
    const auto touch = [&](char what, ParameterIndex parameter, bool writes) {
      touched[fmt::format("{}{}", what, parameter)] |= writes;
    };
    for (ParameterIndex parameter : step.parameters()) {
      if (!step.is<steps::GatherParameter>()) touch('g', parameter, !step.is<steps::Update>());
      if (step.is<steps::Update>() || step.is<steps::GatherParameter>()) touch('p', parameter, true);
    }
    if (!step.is<steps::Compute>()) return touched;
    const Work& work = program_.works[step.work()];
    for (size_t p = 0; p < work.parameters.size(); ++p) {
      touch('p', work.parameters[p], false);
      if (step.runs(Pass::backward_weights) && !work.partial_gradients[p])
        touch('g', work.parameters[p], true);
    }
    return touched;
  }

  bool same_memory(const View& one, const View& other) const {
    if (one.buffer == other.buffer) return overlap(one, other);
    const int64_t at = program_.buffers[one.buffer].offset, other_at = program_.buffers[other.buffer].offset;
    if (at < 0 || other_at < 0) return false;
    return overlap({one.buffer, {at + one.bytes.begin, at + one.bytes.end}},
                   {one.buffer, {other_at + other.bytes.begin, other_at + other.bytes.end}});
  }
  bool clash(const std::vector<View>& writes, const Step& other) const {
    for (const View& write : writes)
      for (const auto* views : {&other.reads, &other.writes})
        for (const View& view : *views)
          if (same_memory(write, view)) return true;
    return false;
  }
  bool must_not_overlap(size_t one, size_t other) const {
    const Touched &first = touched_[one % count_], &second = touched_[other % count_];
    for (const auto& [what, writes] : first)
      if (const auto found = second.find(what); found != second.end() && (writes || found->second))
        return true;
    return clash(step(one).writes, step(other)) || clash(step(other).writes, step(one));
  }

  bool may_begin(const State& state, size_t s) const {
    const size_t iteration = s / count_ * count_;
    for (size_t e = 0; e < iteration; ++e)
      if (!state.ended[e] && !step(e).carried) return false;
    for (StepIndex other : step(s).waits)
      if (!state.ended[iteration + static_cast<size_t>(other.value())]) return false;
    for (StepIndex other : step(s).waits_before)
      if (iteration > 0 && !state.ended[static_cast<size_t>(other.value())]) return false;
    return true;
  }
  // The next step of the lane, where the lane may begin one.
  void begin(const State& state, Lane lane, std::vector<State>& next) {
    size_t s = 0;
    for (; s < 2 * count_ && (step(s).lane != lane || state.begun[s]); ++s)
      if (step(s).lane == lane && lane == Lane::compute && !state.ended[s]) return;
    if (s == 2 * count_ || !may_begin(state, s)) return;
    for (size_t e = 0; e < s; ++e)
      if (!state.ended[e] && must_not_overlap(e, s)) fault_ = fmt::format("{} and {}", e, s);
    next.push_back(state);
    next.back().begun.set(s);
  }
  std::vector<State> nexts(const State& state) {
    std::vector<State> next;
    begin(state, Lane::compute, next);
    begin(state, Lane::communication, next);
    for (size_t s = 0; s < 2 * count_; ++s) {
      if (!state.begun[s] || state.ended[s]) continue;
      next.push_back(state);
      next.back().ended.set(s);
    }
    return next;
  }

  const Program& program_;
  const size_t count_;
  std::vector<Touched> touched_;  // per step
  std::string fault_;
  std::unordered_set<State, Hash> seen_;
};

struct InterleavedJob {
  const char* what;
  Degrees degrees;
  GradientSync sync = GradientSync::allreduce;
  Schedule schedule{};
};

void for_interleaved_jobs(const std::function<void(const Program&)>& check) {
  const GradientChunks layers = parse_chunks("layer", "test");
  const std::vector<InterleavedJob> jobs{
      {"samples", {.n = 2}, GradientSync::allreduce, {.chunks = layers}},
      {"samples, updates at once",
       {.n = 2},
       GradientSync::allreduce,
       {.chunks = layers, .late_updates = false}},
      {"owners", {.n = 2}, GradientSync::owner, {.chunks = layers}},
      {"whole gradients", {.n = 2}, GradientSync::replicate, {.chunks = layers}},
      {"channels", {.c = 2}},
      {"rows", {.h = 2}, GradientSync::allreduce, {.chunks = layers}},
      {"rows by halves", {.h = 2}, GradientSync::allreduce, {.chunks = layers, .halves = true}}};
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  for (const InterleavedJob& job : jobs) {
    SCOPED_TRACE(job.what);
    NodeStrategies strategies = all(net, job.degrees);
    for (LayerStrategy& strategy : strategies) strategy.sync = job.sync;
    strategies[net.node("loss")].sync = GradientSync::allreduce;
    for (const Program& program : lower_job(net, strategies, 2, false, job.schedule)) check(program);
  }
}

TEST(Waits, LetNoOrderOfTheLanesReadTooEarlyOrOverwrite) {
  for_interleaved_jobs([](const Program& program) { EXPECT_EQ(Interleavings(program).fault(), ""); });
}

// The search itself finds what is missing: without one kind of waits each job goes wrong.
TEST(Waits, AreFoundMissingByTheSearch) {
  for_interleaved_jobs([](const Program& program) {
    Program forgetful = program;
    for (Step& step : forgetful.steps) step.waits.clear();
    EXPECT_NE(Interleavings(forgetful).fault(), "");
    const bool carries = std::ranges::any_of(program.steps, &Step::carried);
    forgetful = program;
    for (Step& step : forgetful.steps) step.waits_before.clear();
    EXPECT_EQ(Interleavings(forgetful).fault().empty(), !carries);
  });
}

}  // namespace
}  // namespace cortado
