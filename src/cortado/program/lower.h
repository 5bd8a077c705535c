#pragma once

#include <span>

#include "cortado/parallel/schedule.h"
#include "cortado/program/program.h"

namespace cortado {

struct LowerOptions {
  bool keep_tensors = false;  // every activation and gradient lives to the end (tests, debugging)
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

// Throws InternalError naming the first law that does not hold: every buffer read was written before, buffers
// alive at one time do not overlap, waits point backward, steps of different lanes that share memory wait for
// one another, every parameter that wants a gradient is updated exactly once, after its last use or (late)
// before its first.
void verify(const Program& program, const Network& network);

// Checks the programs of all ranks together: every send has its receive of the same box, and all members of a
// group meet in the same order.
void verify_job(std::span<const Program> programs);

// What a rank does together with each of its groups, in order. It is equal at every member of the group.
using Meetings = std::map<std::vector<int>, std::vector<std::string>>;
Meetings meetings_of(const Program& program);

}  // namespace cortado
