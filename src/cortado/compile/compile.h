#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "cortado/compile/kernel_facts.h"
#include "cortado/kernels/select.h"
#include "cortado/net/network.h"
#include "cortado/parallel/schedule.h"
#include "cortado/parallel/strategy.h"
#include "cortado/program/program.h"

namespace cortado {

struct CompileOptions {
  NodeStrategies strategies{};  // per node; empty: one rank does everything
  Schedule schedule{};
  KernelChoice kernels{};
  int ranks = 1, rank = 0;
  bool keep_tensors = false;  // every tensor and gradient can be read after an iteration
  // On one rank: a parameter's gradient has memory from the step that computes it to its update, and nobody
  // can read it later; weights must be updated in each iteration, at once (Executor::Update).
  bool passing_gradients = false;
  bool fuse = true;
  // The strategies are a built-in one's: with reproducible kernels, cuts by channel are made those that are
  // held (program/reproducible.h).
  bool fit_channels = false;
  // Called after every pass with its name and the program so far (dumps).
  std::function<void(std::string_view pass, const Program&)> after_pass{};
};

// All that one rank needs to run a network: what to do in which order and memory, and by which kernels.
struct Compiled {
  Program program;
  std::vector<Selection> kernels;                          // TaskFacts::kernel is an index into it
  IndexedVector<ParameterIndex, ParameterFormat> formats;  // how this rank's slice lies in memory
  // Per step: how long one of the compute lane waits in place of what it computes, so that the messages of
  // many ranks can be measured on few cores; values then mean nothing. Empty: the kernels compute.
  IndexedVector<StepIndex, Seconds> modelled{};
};

// Network and strategies become a Placement, and this rank's part of that a Program whose works have kernels.
// Throws UserError where no kernel can run a task.
Compiled compile(const Network& network, CompileOptions options = {});

// Where the parts of a network lie, with which both begin.
std::shared_ptr<const Placement> placement_of(const Network& network, const CompileOptions& options);

// The Programs of all ranks: with the profile of this process's kernels those that compile() makes on each.
// `options.rank` does not count, nor does `options.kernels` but for whether they are reproducible.
std::vector<Program> compile_job(const Network& network, const CompileOptions& options,
                                 KernelProfile& profile);
// Those of the first `ranks` alone. `placement`: placement_of() the options.
std::vector<Program> compile_ranks(const Network& network, std::shared_ptr<const Placement> placement,
                                   const CompileOptions& options, KernelProfile& profile, int ranks);

}  // namespace cortado
