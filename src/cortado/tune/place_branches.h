#pragma once

#include <string>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/machine/device_graph.h"
#include "cortado/parallel/strategy.h"
#include "cortado/tune/block_cuts.h"
#include "cortado/tune/branches.h"
#include "cortado/tune/device_blocks.h"
#include "cortado/tune/strategy_costs.h"

namespace cortado {

// How the branches of a set lie: on which devices, and cut along what. Several branches may share a block.
struct BranchPlaces {
  std::vector<DeviceBlock> blocks;  // per branch
  BlockCut cut = BlockCut::scaled;
  bool join = false;  // the layer where the branches meet is cut the same way over all devices
  bool operator==(const BranchPlaces&) const = default;
};

struct PlaceOptions {
  int most_tried = 1000;    // strategies that are simulated, at most
  int patience = 8;         // of a set: so many that are not better, one after the other, end its search
  int most_together = 400;  // as many choices or fewer for all sets together are all searched
};

// Where the branches of a set were put.
struct PlacedSet {
  BranchSet set;
  BranchPlaces places;
};

struct PlacedStrategy {
  Strategy strategy;
  Seconds seconds, before;      // of an iteration under it, and under the strategy that the search began with
  std::vector<PlacedSet> sets;  // that were placed
  int all_sets = 0, tried = 0;
};

// Every way to place a set's branches on `whole`: divisions of it (and in proportion to the branches' work),
// branches on their blocks so that no block is idle, all cuts; `with_join`: also with the join cut over all.
std::vector<BranchPlaces> places_of(const BranchSet& set, const DeviceGraph& machine, DeviceBlock whole,
                                    const std::vector<double>& work, bool with_join);

// The strategy with a set's branches at these places; `whole` is what the places divide. `start`: what layers
// are scaled from. Both: with_all_rules().
Strategy placed(Strategy strategy, const Strategy& start, const Network& network, const BranchSet& set,
                const BranchPlaces& places, DeviceBlock whole);

// Puts branches on disjoint blocks of devices, where a simulated iteration gets shorter by it; then
// transposes grids of inner products (transposed_grids.h).
//
// Each choice has a bound from below: what the busiest first device of a block computes. Choices are
// simulated by their bounds, the lowest first, until the next bound is no less than the best time found.
// Where the choices of all sets together are few, that is a search of all; else all sets are first placed the
// same way, then one set after the other is placed anew, in turns, until nothing is better. On devices of
// unequal weight the start stays as it is.
PlacedStrategy place_branches(const Strategy& start, const Network& network, const DeviceGraph& machine,
                              const StrategyCosts& costs, const PlaceOptions& options = {});

}  // namespace cortado
