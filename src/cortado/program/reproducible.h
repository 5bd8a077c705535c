#pragma once

#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// Returns the strategies with which a network is reproducible: where samples alone are cut, into another
// number of parts than a power of two, each device gets a node of the tree over their blocks
// (layers/sum_blocks.h). Throws UserError naming the first layer whose cut would change a bit of the results.
NodeStrategies reproducible_strategies(const Network& network, NodeStrategies strategies);

// The strategies with cuts by channel alone, as built-in ones have them, made those that are held: into the
// most parts up to as many as are asked for; else by samples; else whole.
NodeStrategies with_held_channels(const Network& network, NodeStrategies strategies);

}  // namespace cortado
