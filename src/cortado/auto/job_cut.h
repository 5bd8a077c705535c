#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cortado/auto/choose_strategy.h"
#include "cortado/compile/compile.h"
#include "cortado/device/runtime.h"
#include "cortado/kernels/select.h"
#include "cortado/parallel/schedule_changes.h"
#include "cortado/train/same_start.h"

namespace cortado {

// How the ranks of a job cut and compute a network, in the words of the options.
struct JobCut {
  std::string strategy;        // empty: auto on several ranks (reproducible: data), single on one
  std::string kernels;         // only this implementation; or measured_kernels (measure/algorithms.h)
  bool fast_math = false;      // kernels with larger rounding errors, too: not with `kernels`
  bool reproducible = false;   // the same bits on any number of ranks and threads: with neither of the two
  ScheduleChanges schedule;    // in place of the strategy's
  bool mixed_devices = false;  // the ranks' devices are of several kinds
  device::DeviceRuntime* device = nullptr;  // of this rank; null: the host
};

// Receives what the search for a strategy and for kernels has to say.
struct JobCutMessages {
  Notices notice;                                    // what a user should know though the work goes on
  std::function<void(const AutoChoice&)> on_choice;  // what `auto` chose
};

// Throws UserError unless `kernels` are known, and given without `fast_math`; and unless what is reproducible
// leaves the choice of kernels and strategy to no measurement.
void check_kernels(const JobCut& cut, Spelling spelled);
std::string strategy_name(const JobCut& cut, int ranks);
// Returns the value for KernelChoice::kernels; empty: all of the list.
std::string kernels_of(const JobCut& cut);

// The following are called by all ranks of the job.

// Returns the named strategy, with the changes of its schedule. `history`: as of choose_strategy().
Strategy strategy_of(const JobCut& cut, const Network& network, Communicator& job, int history,
                     const JobCutMessages& messages);
// Returns the choice of kernels for a network that is compiled by `compiled`: measured if that is asked for.
KernelChoice select_kernels(const JobCut& cut, const Network& network, Communicator& job,
                            const CompileOptions& compiled, const Notices& notice);
// Returns how this rank compiles `network`. Throws UserError where the strategy does not fit.
CompileOptions compile_options(const JobCut& cut, const Network& network, Communicator& job,
                               const JobCutMessages& messages);
// Throws UserError unless all ranks have the same build, the same `facts` and the same cut. To be called
// before the ranks build what must be equal.
void check_same_start(const JobCut& cut, Communicator& job, std::vector<StartFact> facts);

}  // namespace cortado
