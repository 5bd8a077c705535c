// verify() and verify_job() refuse what breaks a law, and say which.
#include <fmt/ranges.h>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using testing::expect_refused;
using testing::lower_job;
using testing::NetBuilder;
using testing::step_of;

// A job of conv a, b and c, and a loss, on two ranks.
class Laws : public ::testing::Test {
 protected:
  using Wreck = std::function<void(Program&)>;

  Step& step(Program& program, const std::string& text) const {
    return program.steps[step_of(net_, program, text)];
  }
  StepIndex place(Program& program, const std::string& text) const { return step_of(net_, program, text); }
  Buffer& buffer(Program& program, const View& view) const { return program.buffers[view.buffer]; }

  void expect_broken(const std::string& law, const Program& sound, const Wreck& wreck) const {
    SCOPED_TRACE(law);
    ASSERT_NO_THROW(verify(sound, net_));
    Program program = sound;
    wreck(program);
    expect_refused(law, [&] { verify(program, net_); });
  }
  using WreckJob = std::function<void(std::vector<Program>&)>;
  void expect_broken(const std::string& law, const std::vector<Program>& sound, const WreckJob& wreck) const {
    SCOPED_TRACE(law);
    ASSERT_NO_THROW(verify_job(sound));
    std::vector<Program> programs = sound;
    wreck(programs);
    expect_refused(law, [&] { verify_job(programs); });
  }

  std::vector<Program> job(const Degrees& degrees, GradientSync sync = GradientSync::allreduce,
                           const Schedule& schedule = {}) const {
    NodeStrategies strategies = all(net_, degrees);
    strategies[net_.node("b")].sync = sync;
    return lower_job(net_, strategies, 2, false, schedule);
  }

  const Network net_ = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  const Program alone_ = lower(net_, testing::facts_of);
  const GradientChunks single_ = parse_chunks("parameter", "test");
  const Program samples_ = job({.n = 2}, GradientSync::allreduce, {.chunks = single_})[0];
  const Program at_once_ = job({.n = 2}, GradientSync::allreduce, {.late_updates = false})[0];
  const Program rows_ = job({.h = 2})[0];
  const Program replicas_ = job({.n = 2}, GradientSync::replicate)[0];
};

TEST_F(Laws, WhatIsReadWasWritten) {
  expect_broken("before it is written", alone_,
                [](Program& program) { program.steps[StepIndex(0)].writes.clear(); });
  expect_broken("which nobody writes", replicas_, [&](Program& program) {
    const View gathered = step(program, "late backward-weights b of all").reads[0];
    for (Step& writer : program.steps) std::erase(writer.writes, gathered);
  });
}

TEST_F(Laws, WaitsPointBackwards) {
  expect_broken("step 1 waits for the later step 2", alone_,
                [](Program& program) { program.steps[StepIndex(1)].waits = {StepIndex(2)}; });
  expect_broken("step 2 waits for step 1 of the compute lane, as it does anyway", alone_,
                [](Program& program) { program.steps[StepIndex(2)].waits = {StepIndex(1)}; });
}

TEST_F(Laws, BuffersThatLiveTogetherAreApart) {
  expect_broken("share memory while both live", alone_, [](Program& program) {
    for (Buffer& buffer : program.buffers) buffer.offset = buffer.offset < 0 ? -1 : 0;
  });
  expect_broken("outside its life", alone_, [&](Program& program) {
    --(buffer(program, step(program, "forward b").reads[0]).last_step = place(program, "forward b"));
  });
  expect_broken("outside its life", alone_, [&](Program& program) {
    ++buffer(program, step(program, "forward b").writes[0]).first_step;
  });
}

TEST_F(Laws, StepsThatShareMemoryDoNotRunTogether) {
  expect_broken("touch the same memory and may run together", rows_,
                [&](Program& program) { step(program, "exchange to c").waits.clear(); });
  expect_broken("touch the same memory and may run together", rows_,
                [&](Program& program) { step(program, "forward c").waits.clear(); });
}

TEST_F(Laws, CarriedStepsEndInTheNextIteration) {
  const StepIndex sum = step_of(net_, samples_, "carried sum-gradient 4");
  const auto wait_at_the_end = [&](Program& program) { program.steps.back().waits.push_back(sum); };
  expect_broken(fmt::format("waits for step {}, which may end later", sum), samples_, wait_at_the_end);
  expect_broken("of the iteration before, which has ended", samples_, [&](Program& program) {
    step(program, "late update 0").waits_before.push_back(place(program, "load data"));
  });
  expect_broken("of the iteration before, which runs again by then", samples_,
                [&](Program& program) { program.steps.back().waits_before.push_back(sum); });
  expect_broken(fmt::format("nobody waits for step {} in the next iteration", sum), samples_,
                [&](Program& program) {
                  for (Step& waiting : program.steps) std::erase(waiting.waits_before, sum);
                });
}

TEST_F(Laws, WhatTwoIterationsTouchLasts) {
  expect_broken("is needed in the next iteration and does not live so long", replicas_,
                [&](Program& program) {
                  --buffer(program, step(program, "late backward-weights b of all").reads[0]).last_step;
                });
  expect_broken("of the iteration before", replicas_, [&](Program& program) {
    step(program, "late backward-weights b of all").waits_before.pop_back();
  });
}

TEST_F(Laws, EachParameterIsUpdatedOnceInItsTime) {
  expect_broken("parameter a/weight is updated 2 times", alone_, [&](Program& program) {
    step(program, "update 1").as<steps::Update>()->parameter = ParameterIndex(0);
  });
  expect_broken("parameter a/weight is used before its late update", at_once_,
                [&](Program& program) { step(program, "update 0").late = true; });
  expect_broken("parameter a/weight is used after its update", samples_,
                [&](Program& program) { step(program, "late update 0").late = false; });
  // A slice that the rank does not hold.
  expect_broken("parameter a/weight is updated 1 times", alone_, [](Program& program) {
    auto placement = std::make_shared<Placement>(*program.placement);
    placement->slices[ParameterIndex(0)][0].reset();
    program.placement = std::move(placement);
  });
}

TEST_F(Laws, HalvesAreAllOfAWork) {
  const Program halves = job({.h = 2}, GradientSync::allreduce, {.halves = true})[0];
  const auto last_half = [&](Program& program) -> Work& {
    return *std::ranges::find_if(program.works, [&](const Work& w) { return name_of(w, net_) == "c 2/2"; });
  };
  expect_broken("are not all of it", halves,
                [&](Program& program) { last_half(program).outputs[0].bytes.end -= 4; });
  expect_broken("are not all of it", halves,
                [&](Program& program) { last_half(program).inputs[0].bytes.begin += 4; });
  expect_broken("are not all of it", halves, [&](Program& program) {
    auto* compute = step(program, "forward c 2/2").as<steps::Compute>();
    compute->work = program.steps[step_of(net_, program, "forward c 1/2")].work();
  });
}

TEST_F(Laws, EachSendHasItsReceive) {
  const std::vector<Program> rows = job({.h = 2});
  const auto exchange = [&](Program& program, const char* text) {
    return step(program, text).as<steps::Exchange>();
  };
  expect_broken("is not sent", rows,
                [&](auto& programs) { exchange(programs[1], "exchange to b")->tag += 100; });
  expect_broken("rank 0 sends to 1 twice under tag", rows, [&](auto& programs) {
    exchange(programs[0], "exchange to b")->tag = exchange(programs[0], "exchange to c")->tag;
  });
  expect_broken("rank 1 sends [0,2)x[0,4)x[3,4)x[0,6) to 0, which expects [0,2)x[0,4)x[2,4)x[0,6)", rows,
                [&](auto& programs) {
                  const WorkIndex work = exchange(programs[0], "exchange to b")->work;
                  --programs[0].works[work].movement.receives[0].box[2].begin;
                });
  expect_broken("messages are sent and", rows, [&](auto& programs) {
    step(programs[1], "exchange to report").action = steps::Barrier{};  // it only receives
  });
}

TEST_F(Laws, CollectivesGatherWhatTheirMovementSays) {
  const std::vector<Program> channels = job({.c = 2});
  const auto movement = [&](Program& program) -> Movement& {
    return program.works[step(program, "allgather to b").work()].movement;
  };
  expect_broken("rank 1 gathers other chunks than its movement says", channels, [&](auto& programs) {
    std::swap(movement(programs[1]).chunks[0], movement(programs[1]).chunks[1]);
  });
  expect_broken("rank 1 is not of the group that it serves", channels, [&](auto& programs) {
    step(programs[0], "allgather to b").template as<steps::Exchange>()->group = {0};
  });
}

TEST_F(Laws, GroupsMeetInOneOrder) {
  const std::vector<Program> samples = job({.n = 2}, GradientSync::allreduce, {.chunks = single_});
  expect_broken("does not meet its group in the order of rank", samples, [](auto& programs) {
    erase_if(programs[0].steps, [](const Step& s) { return s.is<steps::SumGradient>(); });
  });
  expect_broken("does not meet its group in the order of rank", samples, [&](auto& programs) {
    std::swap(step(programs[1], "carried sum-gradient 4").action,
              step(programs[1], "carried sum-gradient 5").action);
  });
}

}  // namespace
}  // namespace cortado
