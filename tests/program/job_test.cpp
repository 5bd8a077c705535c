// Programs of all ranks of a job together.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/program/lower.h"
#include "cortado/program/volume.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

using testing::facts_of;
using ::testing::HasSubstr;
using testing::NetBuilder;

std::vector<Program> lower_job(const Network& net, const NodeStrategies& strategies, int ranks,
                               bool keep = false, const Schedule& schedule = {}) {
  std::vector<Program> programs;
  for (int rank = 0; rank < ranks; ++rank) {
    programs.push_back(lower(net, place(net, strategies, ranks), facts_of,
                             {.keep_tensors = keep, .rank = rank, .schedule = schedule, .after_pass = {}}));
  }
  return programs;
}

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

NodeStrategies all(const Network& net, const Degrees& degrees) {
  LayerStrategy strategy;
  strategy.config.degrees = degrees;
  strategy.config.devices.clear();
  for (int i = 0; i < degrees.product(); ++i) strategy.config.devices.push_back(i);
  NodeStrategies strategies(net.nodes().size(), strategy);
  return strategies;
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

// What the next layer waits for goes first; the weights' gradient is computed meanwhile.
TEST(Job, InputGradientsThatAreExchangedComeBeforeWeightGradients) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  NodeStrategies strategies = all(net, {.h = 2});
  strategies[net.node("c")] = strategies[net.node("loss")] = {};
  for (const Program& program : lower_job(net, strategies, 2)) {
    const auto place = [&](const std::string& work, auto&& is) {
      const auto step = std::ranges::find_if(program.steps, [&](const Step& s) {
        return is(s) && name_of(program.works[s.work()], net) == work;
      });
      return step - program.steps.begin();
    };
    const auto sends_back = [](const Step& s) {
      return s.is<steps::Exchange>() && s.as<steps::Exchange>()->backward;
    };
    const auto weights = [](const Step& s) { return s.runs(Pass::backward_weights); };
    EXPECT_LT(place("b", [](const Step& s) { return s.runs(Pass::backward); }), place("to b", sends_back));
    EXPECT_LT(place("to b", sends_back), place("b", weights));
    EXPECT_LT(place("b", weights), place("a", weights));
  }
}

// conv a, halo, conv b: half of a travels while the other half is computed, half of b is computed meanwhile.
TEST(Job, HalosTravelByHalvesOfTheSamples) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  NodeStrategies strategies = all(net, {.h = 2});
  strategies[net.node("loss")] = {};
  const auto whole = lower_job(net, strategies, 2),
             halves = lower_job(net, strategies, 2, false, {.halves = true});
  ASSERT_NO_THROW(verify_job(halves));
  for (int rank : {0, 1}) {
    const Program& program = halves[rank];
    std::vector<std::string> names;
    std::map<std::string, const Step*> steps;
    for (const Step& step : program.steps) {
      if (step.work() < 0 || program.works[step.work()].part.whole < 0) continue;
      names.push_back(name_of(program.works[step.work()], net));
      steps[names.back()] = &step;
    }
    EXPECT_THAT(names, ::testing::ElementsAre("a 1/2", "to b 1/2", "a 2/2", "to b 2/2", "b 1/2", "b 2/2"));
    const auto waits_for = [&](const char* one, const char* other) {
      const auto& waits = steps.at(one)->waits;
      return std::ranges::find(waits, steps.at(other) - program.steps.data()) != waits.end();
    };
    EXPECT_TRUE(waits_for("to b 1/2", "a 1/2"));
    EXPECT_FALSE(waits_for("to b 1/2", "a 2/2"));
    EXPECT_TRUE(waits_for("b 1/2", "to b 1/2"));
    EXPECT_FALSE(waits_for("b 1/2", "to b 2/2"));
    EXPECT_TRUE(waits_for("b 2/2", "to b 2/2"));
    EXPECT_EQ(volumes_of(program).total().sent, volumes_of(whole[rank]).total().sent);
    EXPECT_EQ(program.steps.size(), whole[rank].steps.size() + 3);
  }
  Program broken = halves[0];
  broken.works.back().outputs[0].bytes.end -= 4;
  try {
    verify(broken, net);
    FAIL() << "a sample is computed by no half";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("are not all of it"));
  }
}

// The patterns of the movements of a layout to another, per rank.
std::vector<Movement::Pattern> patterns(const Layout& owned, const Layout& needed) {
  std::vector<Movement::Pattern> patterns;
  for (size_t rank = 0; rank < owned.size(); ++rank)
    patterns.push_back(copy_movement(owned, needed, static_cast<int>(rank)).pattern());
  return patterns;
}

Box channels(int64_t begin, int64_t end) {
  Box box = Box::whole(Shape{8, end, 16});
  box[1].begin = begin;
  return box;
}

TEST(Job, GroupsThatShareTheirPartsAreCollectives) {
  using enum Movement::Pattern;
  const Layout uneven{channels(0, 3), channels(3, 8), channels(8, 12)};
  const std::optional<Box> whole = channels(0, 12), low = channels(0, 8);
  EXPECT_EQ(patterns(uneven, {whole, whole, whole}), (std::vector{allgather, allgather, allgather}));
  // Two groups that keep to themselves, of which one is a single rank.
  EXPECT_EQ(patterns(uneven, {low, low, channels(8, 12)}), (std::vector{allgather, allgather, messages}));
  // A member that has nothing of it.
  EXPECT_EQ(patterns({low, channels(8, 12), std::nullopt}, {whole, whole, whole}),
            (std::vector{allgather, allgather, allgather}));
  EXPECT_EQ(patterns({std::nullopt, whole, std::nullopt}, {whole, whole, whole}),
            (std::vector{broadcast, broadcast, broadcast}));
  // Rank 2 wants a part from the group, and here the group wants one from rank 2.
  EXPECT_EQ(patterns(uneven, {low, low, whole}), (std::vector{messages, messages, messages}));
  EXPECT_EQ(patterns(uneven, {whole, whole, std::nullopt}), (std::vector{messages, messages, messages}));
  // Halos, and what is there already.
  EXPECT_EQ(patterns({channels(0, 6), channels(6, 12)}, {channels(0, 7), channels(5, 12)}),
            (std::vector{messages, messages}));
  EXPECT_EQ(patterns({whole, whole}, {whole, whole}), (std::vector{messages, messages}));

  const Movement gather = copy_movement(uneven, {whole, whole, whole}, 1);
  EXPECT_EQ(adjoint(gather).pattern(), reduce_scatter);
  EXPECT_EQ(sum_movement({whole, whole, whole}, uneven, 1).pattern(), reduce_scatter);
  EXPECT_FALSE(gather.chunks_in_order());  // channels are last in memory
  Box first = Box::whole(Shape{4, 12, 16}), second = Box::whole(Shape{8, 12, 16});
  second[0].begin = 4;
  const std::optional<Box> both = channels(0, 12);
  EXPECT_TRUE(copy_movement({first, second}, {both, both}, 0).chunks_in_order());
  EXPECT_FALSE(copy_movement({second, first}, {both, both}, 0).chunks_in_order());
}

TEST(Job, GradientsAreSummedOverReplicasOnly) {
  const Network net = NetBuilder().conv("a", "data").loss("a", "data").build();
  const NodeStrategies strategies = all(net, {.n = 2});
  for (const Program& program : lower_job(net, strategies, 2)) {
    size_t sums = 0;
    for (const Step& step : program.steps) {
      if (!step.is<steps::SumGradient>()) continue;
      sums += step.parameters().size();
      EXPECT_EQ(step.group(), (std::vector<int>{0, 1}));
    }
    EXPECT_EQ(sums, 2u);  // weight and bias
  }
}

// Parameters of the chunks of rank 0, in order: "3 2 | 1 0".
std::string chunks_of(const Network& net, const NodeStrategies& strategies, const std::string& chunks) {
  std::string text;
  const auto programs = lower_job(net, strategies, 2, false, {.chunks = parse_chunks(chunks, "test")});
  for (const Step& step : programs[0].steps) {
    if (step.is<steps::SumGradient>())
      text += fmt::format("{}{}", text.empty() ? "" : " | ", fmt::join(step.parameters(), " "));
  }
  return text;
}

// Weight and bias of a, b and c are parameters 0 to 5; 576 and 16 bytes.
TEST(Job, GradientsAreSummedInChunks) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  NodeStrategies strategies = all(net, {.n = 2});
  EXPECT_EQ(chunks_of(net, strategies, "parameter"), "4 | 5 | 2 | 3 | 0 | 1");
  EXPECT_EQ(chunks_of(net, strategies, "layer"), "4 5 | 2 3 | 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "first:1"), "4 5 | 2 3 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "first:2"), "4 5 2 3 | 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "first:9"), "4 5 2 3 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "577B"), "4 5 | 2 3 | 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "1KiB"), "4 5 2 | 3 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "one"), "4 5 2 3 0 1");
  // A layer whose gradient nobody else has parts neither the chunks before nor those after it.
  strategies[net.node("b")] = all(net, {.c = 2})[0];
  EXPECT_EQ(chunks_of(net, strategies, "one"), "4 5 0 1");
}

std::string order_of(const Network& net, const Program& program) {
  std::vector<std::string> order;
  for (const Step& step : program.steps) {
    std::string text(name_of(program, step));
    if (step.late) text = "late " + text;
    if (step.carried) text = "carried " + text;
    if (step.work() >= 0) text += " " + name_of(program.works[step.work()], net);
    for (int parameter : step.parameters()) text += fmt::format(" {}", parameter);
    order.push_back(text);
  }
  return fmt::format("{}", fmt::join(order, "\n"));
}

TEST(Job, LateUpdatesComeBeforeTheFirstUse) {
  const Network net =
      NetBuilder().conv("a", "data", "s").conv("b", "a", "s").conv("c", "b").loss("c", "data").build();
  const Program program =
      lower_job(net, all(net, {.n = 2}), 2, false, {.chunks = parse_chunks("layer", "test")})[0];
  std::vector<std::string> order;
  for (const Step& step : program.steps) {
    if (step.is<steps::Update>()) order.push_back(fmt::format("update {}", step.parameters()[0]));
    if (step.runs(Pass::forward)) order.push_back(name_of(program.works[step.work()], net));
    if (step.late) {
      ASSERT_EQ(step.waits_before.size(), 1u);
      EXPECT_TRUE(program.steps[step.waits_before[0]].carried);
    }
  }
  EXPECT_EQ(fmt::format("{}", fmt::join(order, ", ")),
            "update 0, update 1, a, b, update 2, update 3, c, loss");
  const auto at_once = lower_job(net, all(net, {.n = 2}), 2, false, {.late_updates = false});
  for (const Step& step : at_once[0].steps) EXPECT_FALSE(step.late || step.carried);
}

// What the next iteration needs first is under way last, and goes first.
TEST(Job, MessagesKnowWhenTheyAreNeeded) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  NodeStrategies strategies = all(net, {.n = 2});
  strategies[net.node("b")] = all(net, {.c = 2})[0];
  const Program program = lower_job(net, strategies, 2, false, {.chunks = parse_chunks("layer", "test")})[0];
  const int end = static_cast<int>(program.steps.size());
  std::map<std::string, int> needed, place;
  for (int s = 0; s < end; ++s) {
    const Step& step = program.steps[s];
    std::string name(name_of(program, step));
    if (step.work() >= 0) name += " " + name_of(program.works[step.work()], net);
    for (int parameter : step.parameters()) name += fmt::format(" {}", parameter);
    place[name] = s;
    needed[name] = step.needed;
  }
  EXPECT_EQ(needed["allgather to b"], place["forward b"]);
  EXPECT_EQ(needed["sum-gradient 0 1"], end + place["update 0"]);
  EXPECT_EQ(needed["sum-gradient 4 5"], end + place["update 4"]);
  EXPECT_LT(place["sum-gradient 4 5"], place["sum-gradient 0 1"]);
  EXPECT_LT(needed["sum-gradient 0 1"], needed["sum-gradient 4 5"]);
}

// In a job updates wait for their layer: they are computed while its inputs are under way.
TEST(Job, UpdatesFillTheWaitForInputs) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  const Schedule at_once{.late_updates = false};
  const std::string late = order_of(net, lower_job(net, all(net, {.c = 2}), 2)[0]);
  EXPECT_THAT(late, HasSubstr("allgather to b\nlate update 2\nlate update 3\nforward b\n"));
  const std::string early = order_of(net, lower_job(net, all(net, {.c = 2}), 2, false, at_once)[0]);
  EXPECT_THAT(early, HasSubstr("allgather to b\nforward b\n"));
}

// Lee et al. 2017, Algorithm 2: what the whole gradient of b is computed of is gathered in both passes, and
// it is computed in the next iteration, before b is used.
TEST(Job, ReplicasComputeWholeGradients) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  NodeStrategies strategies = all(net, {.n = 2});
  strategies[net.node("b")].sync = GradientSync::replicate;
  const Schedule at_once{.chunks = parse_chunks("layer", "test"), .late_updates = false};
  const auto programs = lower_job(net, strategies, 2, false, {.chunks = at_once.chunks});
  verify_job(programs);
  EXPECT_THAT(order_of(net, programs[0]), HasSubstr("late update 0\nlate update 1\nforward a\n"
                                                    "late backward-weights b of all\nlate update 2\n"
                                                    "late update 3\nforward b\ncarried allgather to b\n"));
  EXPECT_THAT(order_of(net, programs[0]), HasSubstr("carried sum-gradient 4 5\nbackward c\n"
                                                    "carried allgather to b of all\nbackward b\n"));
  const auto without = lower_job(net, strategies, 2, false, at_once);
  verify_job(without);
  EXPECT_THAT(order_of(net, without[0]), HasSubstr("sum-gradient 0 1\nbackward-weights b of all\n"));
  EXPECT_THAT(order_of(net, without[0]), ::testing::Not(HasSubstr("sum-gradient 2")));
}

TEST(Job, BrokenReplicasAreCaught) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  NodeStrategies strategies = all(net, {.n = 2});
  strategies[net.node("b")].sync = GradientSync::replicate;
  auto expect_caught = [&](const std::function<void(Program&, Step & whole)>& wreck, const std::string& law) {
    Program program = lower_job(net, strategies, 2)[0];
    ASSERT_NO_THROW(verify(program, net));
    wreck(program, *std::ranges::find_if(program.steps, [](const Step& step) {
            return step.late && step.runs(Pass::backward_weights);
          }));
    try {
      verify(program, net);
      FAIL() << "the broken program passed: " << law;
    } catch (const InternalError& error) {
      EXPECT_THAT(error.what(), HasSubstr(law));
    }
  };
  expect_caught([](Program&, Step& whole) { whole.waits_before.pop_back(); }, "of the iteration before");
  expect_caught([](Program& program, Step& whole) { program.buffers[whole.reads[0].buffer].last_step -= 1; },
                "does not live so long");
  expect_caught(
      [](Program& program, Step& whole) {
        for (Step& step : program.steps)
          if (step.carried && step.writes == std::vector{whole.reads[0]}) step.writes.clear();
      },
      "which nobody writes");
}

TEST(Job, BrokenOnesAreCaught) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  NodeStrategies strategies = all(net, {.n = 2});
  strategies[net.node("b")] = {};  // so that tensors move
  auto expect_caught = [&](const std::function<void(std::vector<Program>&)>& wreck, const std::string& law) {
    std::vector<Program> programs = lower_job(net, strategies, 2);
    wreck(programs);
    try {
      verify_job(programs);
      FAIL() << "the broken job passed: " << law;
    } catch (const InternalError& error) {
      EXPECT_THAT(error.what(), HasSubstr(law));
    }
  };
  auto exchange = [](Program& program) -> Step& {
    return *std::ranges::find_if(program.steps, [&](const Step& step) {
      return step.is<steps::Exchange>() && !program.works[step.work()].movement.sends.empty();
    });
  };
  expect_caught([&](auto& programs) { std::get<steps::Exchange>(exchange(programs[1]).action).tag += 100; },
                "is not sent");
  expect_caught(
      [&](auto& programs) {
        auto& steps = programs[0].steps;
        std::erase_if(steps, [](const Step& step) { return step.is<steps::SumGradient>(); });
      },
      "does not meet its group");
  // A chunk of a collective that another rank thinks otherwise of.
  NodeStrategies gathers = all(net, {.c = 2});
  gathers[net.node("loss")] = {};
  std::vector<Program> together = lower_job(net, gathers, 2);
  EXPECT_NO_THROW(verify_job(together));
  for (Work& work : together[1].works) {
    if (!work.movement.group.empty()) std::swap(work.movement.chunks[0], work.movement.chunks[1]);
  }
  EXPECT_THROW(verify_job(together), InternalError);
  // A late update after its parameter's use, a sum that nobody waits for.
  std::vector<Program> late = lower_job(net, all(net, {.n = 2}), 2);
  EXPECT_NO_THROW(verify(late[0], net));
  for (Step& step : late[0].steps) step.late = false;
  EXPECT_THROW(verify(late[0], net), InternalError);
  for (Step& step : late[1].steps) step.waits_before.clear();
  EXPECT_THROW(verify(late[1], net), InternalError);
  // A wait that is forgotten.
  std::vector<Program> programs = lower_job(net, strategies, 2);
  for (Step& step : programs[0].steps) step.waits.clear();
  EXPECT_THROW(verify(programs[0], net), InternalError);
}

}  // namespace
}  // namespace cortado
