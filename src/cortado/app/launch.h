#pragma once

#include <optional>
#include <string>

#include "cortado/train/observer.h"

namespace cortado {

// Starts the ranks of a command line with --ranks above 1, each of which runs that same command line; watches
// them and returns the exit code. Returns nothing where this process shall do the work itself, alone or as a
// rank that was started.
std::optional<int> start_job(int count, const char* const* words);

// Tells the process that started the ranks how far the training is, and which snapshot to resume from. Does
// nothing where there is none.
class JobObserver : public TrainingObserver {
 public:
  void iteration(const IterationReport& report) override;
  void snapshot_complete(const std::string& path) override;
};

}  // namespace cortado
