#pragma once

#include "cortado/program/program.h"

namespace cortado {

// What one rank has in memory while it trains: the one count that the tuner, `auto` and the pages use, and
// what the Executor, its parameters and the solver allocate. The planner's search uses bounds of it
// (plan/memory.h).
struct HeldMemory {
  Bytes arena;       // activations, gradients, what kernels save, scratch, staging
  Bytes parameters;  // the rank's slices, in the order of its kernels, padding included
  Bytes gradients;   // of parameters; those that pass lie in the arena
  Bytes history;     // of the solver
  Bytes total() const { return arena + parameters + gradients + history; }
};

// `history`: tensors of a parameter's size that the solver keeps, of what this rank updates (history_count in
// kernels/update.h, and the sum of gradients where iter_size is above 1). Batches lie in the readers' memory.
HeldMemory held_memory(const Program& program, const Network& network, int history);

}  // namespace cortado
