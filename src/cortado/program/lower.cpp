#include "cortado/program/lower.h"

#include "cortado/program/passes.h"
#include "cortado/program/verify.h"

namespace cortado {

namespace {

// Tensors that are to be looked at later must not be overwritten.
TaskOracle without_in_place(const TaskOracle& oracle) {
  return [&oracle](const Task& task) {
    auto facts = oracle(task);
    if (facts) facts->in_place = false;
    return facts;
  };
}

}  // namespace

Program lower(const Network& network, std::shared_ptr<const Placement> placement, const TaskOracle& oracle,
              const LowerOptions& options) {
  Program program;
  program.rank = options.rank;
  program.placement = std::move(placement);
  auto done = [&](std::string_view pass) {
    if (options.after_pass) options.after_pass(pass, program);
  };
  const TaskOracle tasks = options.keep_tensors ? without_in_place(oracle) : oracle;
  make_works(program, network, tasks, options.fuse);
  done("make works");
  place_forward(program, network);
  done("place forward");
  if (network.learns()) place_backward(program, network, options.keep_tensors, options.passing_gradients);
  done("place backward");
  if (options.schedule.halves) halve_halos(program, tasks);
  done("halve halos");
  if (!options.keep_tensors) recompute(program, network);
  done("recompute");
  chunk_gradients(program, network, options.schedule.chunks);
  done("chunk gradients");
  if (options.schedule.late_updates) delay_updates(program);
  done("delay updates");
  add_waits(program);
  done("add waits");
  plan_buffers(program, network, options.keep_tensors);
  done("plan buffers");
  add_memory_waits(program);
  done("add memory waits");
  find_needs(program);
  done("find needs");
  verify(program, network);
  return program;
}

Program lower(const Network& network, Placement placement, const TaskOracle& oracle,
              const LowerOptions& options) {
  return lower(network, std::make_shared<const Placement>(std::move(placement)), oracle, options);
}

Program lower(const Network& network, const TaskOracle& oracle, const LowerOptions& options) {
  return lower(network, place(network, NodeStrategies(network.nodes().size()), 1), oracle, options);
}

}  // namespace cortado
