#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/program/lower.h"
#include "cortado/program/passes.h"
#include "cortado/program/verify.h"

#include "tests/program/nets.h"

namespace cortado::testing {

inline LayerStrategy cut_by(const Degrees& degrees) {
  LayerStrategy strategy;
  strategy.config.degrees = degrees;
  strategy.config.devices.clear();
  for (int i = 0; i < degrees.product(); ++i) strategy.config.devices.push_back(i);
  return strategy;
}
inline NodeStrategies all(const Network& net, const Degrees& degrees) {
  return NodeStrategies(net.nodes().size(), cut_by(degrees));
}

inline std::vector<Program> lower_job(const Network& net, const NodeStrategies& strategies, int ranks,
                                      bool keep = false, const Schedule& schedule = {}) {
  std::vector<Program> programs;
  for (int rank = 0; rank < ranks; ++rank)
    programs.push_back(lower(net, place(net, strategies, ranks), facts_of,
                             {.keep_tensors = keep, .rank = rank, .schedule = schedule, .after_pass = {}}));
  return programs;
}

// How a net is cut, and whose program is made.
struct Cutting {
  NodeStrategies strategies;
  int ranks = 1, rank = 0;
};
inline Cutting whole(const Network& net) { return {NodeStrategies(net.nodes().size())}; }

struct MakeOptions {
  TaskOracle oracle = facts_of;
  bool fuse = true, keep = false;
};

// A program after the first passes: its works, also the forward steps, also the backward steps.
inline Program with_works(const Network& net, const Cutting& cutting, const MakeOptions& options = {}) {
  Program program;
  program.rank = cutting.rank;
  program.placement = std::make_shared<const Placement>(place(net, cutting.strategies, cutting.ranks));
  make_works(program, net, options.oracle, options.fuse);
  return program;
}
inline Program with_forward(const Network& net, const Cutting& cutting, const MakeOptions& options = {}) {
  Program program = with_works(net, cutting, options);
  place_forward(program, net);
  return program;
}
inline Program with_backward(const Network& net, const Cutting& cutting, const MakeOptions& options = {}) {
  Program program = with_forward(net, cutting, options);
  place_backward(program, net, options.keep);
  return program;
}

// Random nets under random strategies, and the program of each rank after its backward steps are placed.
template <typename Check>
void for_random_programs(uint32_t seeds, Check&& check) {
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 4);
    const Network net = random_net(seed);
    const Strategy strategy = random_strategy(seed, net, ranks);
    const NodeStrategies strategies = resolve(strategy, net, ranks, "random");
    for (int rank = 0; rank < ranks; ++rank) {
      SCOPED_TRACE(fmt::format("seed {}, rank {} of {}", seed, rank, ranks));
      check(net, with_backward(net, {strategies, ranks, rank}), seed);
    }
  }
}

// "late update 2", "carried allgather to b", "forward a+relu".
inline std::string text_of(const Network& net, const Program& program, const Step& step) {
  std::string text(name_of(program, step));
  if (step.late) text = "late " + text;
  if (step.carried) text = "carried " + text;
  if (step.work()) text += " " + name_of(program.works[step.work()], net);
  for (ParameterIndex parameter : step.parameters()) text += fmt::format(" {}", parameter);
  return text;
}
inline std::vector<std::string> texts_of(const Network& net, const Program& program) {
  std::vector<std::string> texts;
  for (const Step& step : program.steps) texts.push_back(text_of(net, program, step));
  return texts;
}
// The step of that text; fails where there is none.
inline StepIndex step_of(const Network& net, const Program& program, const std::string& text) {
  const auto texts = texts_of(net, program);
  const auto found = std::ranges::find(texts, text);
  if (found == texts.end()) throw InternalError("no step '" + text + "' in\n" + program.text(net));
  return StepIndex(found - texts.begin());
}

// Steps and buffers put together by hand, for passes that look at nothing else.
class HandMade {
 public:
  HandMade() {
    auto placement = std::make_shared<Placement>();
    placement->tensor_values.assign(net.tensors().size(), ValueIndex());
    placement->report_values.assign(net.tensors().size(), ValueIndex());
    program.placement = std::move(placement);
  }

  View buffer(int64_t bytes, Buffer::Kind kind = Buffer::Kind::activation) {
    return program.add_buffer(fmt::format("b{}", program.buffers.size()), kind, {bytes});
  }
  Step& compute(std::vector<View> reads, std::vector<View> writes) {
    return add({.action = steps::Accumulate{}, .reads = std::move(reads), .writes = std::move(writes)});
  }
  Step& message(std::vector<View> reads, std::vector<View> writes) {
    return add({.action = steps::Exchange{},
                .lane = Lane::communication,
                .reads = std::move(reads),
                .writes = std::move(writes)});
  }
  // What came before is the forward pass.
  void barrier() {
    program.forward_end = static_cast<int>(program.steps.size());
    add({.action = steps::Barrier{}});
  }

  Network net = NetBuilder().build();
  Program program;

 private:
  Step& add(Step step) {
    program.steps.push_back(std::move(step));
    return program.steps.back();
  }
};

// Runs `check`, which must throw an InternalError that says `law`.
template <typename Check>
void expect_refused(const std::string& law, Check&& check) {
  try {
    check();
    ADD_FAILURE() << "not refused: " << law;
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(law));
  }
}

}  // namespace cortado::testing
