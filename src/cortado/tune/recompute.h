#pragma once

#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"
#include "cortado/sim/simulated_job.h"

namespace cortado {

// Which layers are computed again so that a job keeps to a limit of memory.
struct RecomputedStrategy {
  Strategy strategy;
  int layers = 0;                       // that are computed again
  Bytes memory, before;                 // that the rank holds which holds most: with that, and without
  Seconds added, lower_bound;           // computing of that rank; no choice under the limit adds less
  Seconds iteration, iteration_before;  // simulated

  std::string text() const;  // "12 of 40 layers computed again: 1.1 GiB in place of 2.0 GiB, ..."
};

// Chooses, for the cuts and the schedule of `start`, the layers to compute again so that no rank holds more
// than `limit`, with the least computing added. What a rank holds is the whole of held_memory() of what is
// compiled. `history`: as of held_memory(). Throws UserError where no choice that is known keeps to the
// limit; it begins with `where`.
RecomputedStrategy recompute_within(Bytes limit, const SimulatedMachine& machine, const Network& network,
                                    const Strategy& start, int history, const std::string& where);

// The same for limits between the least and what nothing recomputed takes: at most `most`, by memory.
std::vector<RecomputedStrategy> recompute_frontier(int most, const SimulatedMachine& machine,
                                                   const Network& network, const Strategy& start,
                                                   int history);

}  // namespace cortado
