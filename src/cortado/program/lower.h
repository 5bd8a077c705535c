#pragma once

#include "cortado/parallel/schedule.h"
#include "cortado/program/program.h"

namespace cortado {

struct LowerOptions {
  bool keep_tensors = false;  // every activation and gradient has memory of its own throughout
  // On one rank: gradients of parameters lie in the arena, each from what computes it to its update.
  bool passing_gradients = false;
  bool fuse = true;
  int rank = 0;
  Schedule schedule{};
  // Called after every pass with its name and the program so far (dumps).
  std::function<void(std::string_view pass, const Program&)> after_pass;
};

// Makes the Program of one rank's part of a placed network: runs the passes in order. `oracle` is asked about
// each task that is placed. The Programs of a job's ranks share the placement.
Program lower(const Network& network, std::shared_ptr<const Placement> placement, const TaskOracle& oracle,
              const LowerOptions& options = {});
Program lower(const Network& network, Placement placement, const TaskOracle& oracle,
              const LowerOptions& options = {});
// The same for the only rank of a job.
Program lower(const Network& network, const TaskOracle& oracle, const LowerOptions& options = {});

}  // namespace cortado
