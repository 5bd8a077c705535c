#pragma once

#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/train/solver_options.h"

namespace cortado {

// Throws UserError when the training is to write snapshots in Caffe's binary format that would be larger than
// a protobuf message can be (2 GiB): before it has trained for hours. `rounds`: history tensors of a
// parameter.
void check_snapshot_size(const SolverOptions& solver, const LoadedNetwork& net, int rounds);

}  // namespace cortado
