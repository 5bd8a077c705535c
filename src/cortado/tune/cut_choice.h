#pragma once

#include <vector>

#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// Layers that are cut together, one after the other, and the ways to cut them. The kernels of other layers
// compute none of theirs.
struct CutChoice {
  std::vector<NodeIndex> nodes;
  std::vector<std::vector<LayerStrategy>> ways;  // each: a strategy per node
};

// The strategy with a rule for each layer, where the first choices take these ways.
Strategy with_ways(Strategy strategy, const Network& network, const std::vector<CutChoice>& choices,
                   const std::vector<size_t>& ways);

}  // namespace cortado
