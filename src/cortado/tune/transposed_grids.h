#pragma once

#include <vector>

#include "cortado/parallel/strategy.h"

namespace cortado {

// Strategies that differ from this one by the order of one inner product's devices: of two dimensions that it
// is cut along, the other one runs faster. Cut along c and r (stationary-w), a layer's outputs then lie where
// the next one, cut likewise but transposed, reads them (Dryden et al. 2019). Layers after it
// without parameters that lie on the same devices follow. `strategy`: with_all_rules().
std::vector<Strategy> transposed_grids(const Strategy& strategy, const Network& network);

}  // namespace cortado
