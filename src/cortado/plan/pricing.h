#pragma once

#include <vector>

#include "cortado/cost/cost_model.h"
#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"
#include "cortado/plan/groups.h"

namespace cortado::plan {

// What a group costs under one configuration: the terms of Eq. 1 that need no neighbour (layer-wise
// parallelism, section 4), of the slowest device.
struct Priced {
  LayerStrategy strategy;  // of the first layer
  TaskTime compute;
  Seconds sums;    // within the layers: partial sums of r, statistics of batch normalization
  Seconds sync;    // of the gradients
  Seconds update;  // of the parameters
  int64_t sums_bytes = 0, sync_bytes = 0;  // that all devices send for them
  Bytes parameters;  // on the device that holds most: with their gradients and the solver's history
  Bytes memory;      // what the search counts for it (memory.h)
  std::vector<GridLayout> reads{}, owns{};  // inputs of the first layer, outputs of the last one
  Seconds total() const { return compute.total() + sums + sync + update; }
};

// `network` for training has backward passes, sums of gradients and updates. `history`: tensors of a
// parameter's size that the solver keeps.
struct PricingOptions {
  int devices = 1;
  int history = 1;
};

Priced price(const Network& network, const Group& group, const ParallelConfig& config,
             const PricingOptions& options, CostModel& costs);

}  // namespace cortado::plan
