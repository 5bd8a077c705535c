#include "cortado/compile/compile.h"

#include <exception>
#include <memory>
#include <mutex>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/kernels/select.h"
#include "cortado/program/lower.h"
#include "cortado/program/reproducible.h"

namespace cortado {
namespace {

LowerOptions lowering(const CompileOptions& options, int rank) {
  return {.keep_tensors = options.keep_tensors,
          .passing_gradients = options.passing_gradients,
          .fuse = options.fuse && !options.kernels.mixed_devices,
          .rank = rank,
          .schedule = options.schedule,
          .after_pass = options.after_pass};
}

IndexedVector<ParameterIndex, ParameterFormat> formats_of(const Network& network, const Program& program,
                                                          const std::vector<Selection>& kernels) {
  IndexedVector<ParameterIndex, ParameterFormat> formats(network.parameters().size());
  for (const Work& work : program.works) {
    for (size_t p = 0; p < work.parameters.size(); ++p) {
      ParameterFormat format = kernels[work.facts.kernel].kernel->parameter_format(static_cast<int>(p));
      ensure(!work.task.canonical_parameters || format == ParameterFormat{},
             "a shared parameter is not canonical");
      ensure(!work.backward_only || format == formats[work.parameters[p]],
             "whole gradients lie otherwise than the parameter");
      formats[work.parameters[p]] = std::move(format);
    }
  }
  return formats;
}

}  // namespace

std::shared_ptr<const Placement> placement_of(const Network& network, const CompileOptions& options) {
  NodeStrategies strategies = options.strategies;
  if (strategies.empty()) strategies.resize(network.nodes().size());
  const bool reproducible = options.kernels.reproducible();
  if (reproducible && options.fit_channels) strategies = with_held_channels(network, std::move(strategies));
  if (reproducible) strategies = reproducible_strategies(network, std::move(strategies));
  return std::make_shared<const Placement>(place(network, strategies, options.ranks, reproducible));
}

Compiled compile(const Network& network, CompileOptions options) {
  Compiled compiled;
  const auto offer = [&](const Task& task) {
    Selection selection = options.kernels.select(task);
    std::optional<TaskFacts> facts = facts_of(task, selection);
    if (!facts) return facts;
    facts->kernel = static_cast<int>(compiled.kernels.size());
    compiled.kernels.push_back(std::move(selection));
    return facts;
  };
  compiled.program = lower(network, placement_of(network, options), offer, lowering(options, options.rank));
  compiled.formats = formats_of(network, compiled.program, compiled.kernels);
  return compiled;
}

std::vector<Program> compile_job(const Network& network, const CompileOptions& options,
                                 KernelProfile& profile) {
  return compile_ranks(network, placement_of(network, options), options, profile, options.ranks);
}

std::vector<Program> compile_ranks(const Network& network, std::shared_ptr<const Placement> placement,
                                   const CompileOptions& options, KernelProfile& profile, int ranks) {
  std::mutex mutex;
  const auto ask = [&](const Task& task) {
    const std::scoped_lock lock(mutex);
    return profile(task);
  };
  std::vector<Program> programs(static_cast<size_t>(ranks));
  std::vector<std::exception_ptr> failures(programs.size());
  const auto make = [&](int64_t rank) {
    try {
      programs[static_cast<size_t>(rank)] =
          lower(network, placement, ask, lowering(options, static_cast<int>(rank)));
    } catch (...) {
      failures[static_cast<size_t>(rank)] = std::current_exception();
    }
  };
  if (options.after_pass) {  // dumps come in the order of ranks
    for (int rank = 0; rank < ranks; ++rank) make(rank);
  } else {
    parallel_for(ranks, make);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return programs;
}

}  // namespace cortado
