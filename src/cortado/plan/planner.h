#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cortado/plan/pricing.h"
#include "cortado/plan/search.h"

namespace cortado::plan {

// What a group of layers costs in a plan. transfer: what brings its inputs, and their gradients back.
struct PlannedGroup {
  std::vector<int> nodes;  // of the network
  LayerStrategy strategy;  // of the first; the others follow
  TaskTime compute;
  Seconds sums, sync, update, transfer;
  int64_t bytes = 0;  // that all devices send for it in an iteration
  Bytes memory;       // of the device that holds most
  // The next best configuration, and how much longer an iteration takes with it when all others are chosen
  // anew for it. runner_up_bound: it takes at least that much longer (its tasks were not measured).
  ParallelConfig runner_up;
  Seconds runner_up_costs;
  bool runner_up_bound = false;
  Seconds total() const { return compute.total() + sums + sync + update + transfer; }
};

// How a network is best cut, by Eq. 1 of the papers: an iteration takes the sum over layers of computing,
// sums and transfers, each as long as the slowest device or link takes; nothing overlaps.
struct Plan {
  Strategy strategy;
  std::vector<PlannedGroup> groups;
  Seconds seconds;  // of an iteration
  bool proven = true;
  std::vector<std::pair<std::string, Seconds>> baselines;  // the built-in strategies, by the same costs
  int64_t bytes = 0;                                       // that all devices send in an iteration
  Bytes memory;                                            // of the device that holds most
  Seconds pricing;     // that making the cost graph took, measuring included
  int candidates = 0;  // of all groups together
  SearchStatistics search;
};

// Throws UserError where the search would need too much memory.
Plan make_plan(const Network& network, const PricingOptions& options, CostModel& costs,
               const std::vector<int>& node_of_device);

}  // namespace cortado::plan
