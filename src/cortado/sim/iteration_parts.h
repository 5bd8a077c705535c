#pragma once

#include "cortado/sim/simulated_job.h"

namespace cortado {

// What a simulated iteration goes by, at the rank that computes most: its computing, and what it waits for.
// The sum is the iteration.
struct IterationParts {
  Seconds compute, exchange, sync;  // exchange: tensors, partial sums, statistics; sync: sums of gradients
  Seconds total() const { return compute + exchange + sync; }
};
IterationParts parts_of(const SimulatedJob& job);

}  // namespace cortado
