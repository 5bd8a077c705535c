#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cortado/comm/communicator.h"
#include "cortado/train/observer.h"

namespace cortado {

// Starts N ranks of this very command for a command line with --ranks N above 1, outside a job of MPI;
// watches them and returns the exit code. Returns nothing where this process shall do the work itself, as a
// rank or alone.
std::optional<int> start_job(int count, const char* const* words);

// Tells the parent how far the training is, and which snapshot to resume from. Does nothing without a parent.
class JobObserver : public TrainingObserver {
 public:
  void iteration(const IterationReport& report) override;
  void snapshot(int64_t iteration, const std::string& path) override;
};

// The ranks of this process's job; a single one outside a job. Throws UserError when --ranks (0: not given)
// is not the job's size.
std::unique_ptr<Communicator> join_ranks(int ranks_asked);

}  // namespace cortado
