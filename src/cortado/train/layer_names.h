#pragma once

#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/train/solver_options.h"

namespace cortado {

// Several layers with parameters may have one name, as in Caffe. Throws UserError, naming two of them, where
// a training needs to distinguish them by it: HDF5 snapshots have one place for a name, and Caffe would test
// with the last one's parameters in the first, and with untrained ones in the others.
void check_layer_names(const SolverOptions& solver, const Network& train,
                       const std::vector<const Network*>& tests);

}  // namespace cortado
