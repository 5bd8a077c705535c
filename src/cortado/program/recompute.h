#pragma once

#include <vector>

#include "cortado/program/placement.h"

namespace cortado {

// Sets Operation::recomputed of what the strategies ask for, as far as it can be: outputs that are losses,
// that are reported, or that whole gradients of replicas are computed from are kept. What one kernel might
// run together with an operation that is recomputed is recomputed with it, and so is what only moves its
// outputs. place() calls it.
void mark_recomputed(Placement& placement, const Network& network);

// Operations that run again, in order, before the backward pass of `before`.
struct Recomputation {
  OperationIndex before;
  std::vector<OperationIndex> operations;
};
// All of them, in the order of the backward pass. The placement alone decides, so that all ranks exchange in
// one order: a tensor counts as needed by its producer and by each of its readers.
std::vector<Recomputation> recomputations_of(const Placement& placement, const Network& network);

}  // namespace cortado
