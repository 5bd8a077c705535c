#pragma once

#include <span>
#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/train/solver_nets.h"

namespace cortado {

// A value that must be equal on all ranks of a job, with its name: "net lenet.prototxt" and the net's own
// bytes.
struct StartFact {
  std::string name, value;
};

// The net of that state: `what` and the file's path.
StartFact fact_of(const std::string& what, const NetFile& file, const caffe::NetState& state);
// Those of all nets of a solver.
std::vector<StartFact> facts_of(const SolverNets& nets);

// All ranks call it, with the same number of facts. Throws UserError, the same on every rank, that names the
// first fact in which a rank differs from rank 0. Digests travel, not the values.
void check_same_start(Communicator& communicator, std::span<const StartFact> facts);

}  // namespace cortado
