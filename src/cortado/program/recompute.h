#pragma once

#include <vector>

#include "cortado/program/placement.h"

namespace cortado {

// Operations that run again, in order, before the backward pass of `before`.
struct Recomputation {
  OperationIndex before;
  std::vector<OperationIndex> operations;
};
// All of them, in the order of the backward pass. The placement alone decides, so that all ranks exchange in
// one order: a tensor counts as needed by its producer and by each of its readers.
std::vector<Recomputation> recomputations_of(const Placement& placement, const Network& network);

}  // namespace cortado
