#pragma once

#include <vector>

#include "cortado/net/network.h"

namespace cortado {

// Parallel paths of a network from a layer where they part to one where all of them have met again: the
// branches of an inception block, two towers, the paths of a residual block.
struct BranchSet {
  NodeIndex fork, join;                          // nowhere: the batches; the end of the network
  std::vector<std::vector<NodeIndex>> branches;  // two or more; of each its layers in order
};

// All sets of a network by their forks, in order; a set inside a branch of another one comes after it. Sets
// with layers that share parameters are left out: these layers have to be cut the same way.
std::vector<BranchSet> branch_sets(const Network& network);

}  // namespace cortado
