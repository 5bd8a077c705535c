#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cortado/plan/cheapest.h"
#include "cortado/plan/pricing.h"

namespace cortado::plan {

// What a group of layers costs in a plan. transfer: what brings its inputs, and their gradients back.
struct PlannedGroup {
  std::vector<NodeIndex> nodes;
  LayerStrategy strategy;  // of the first; the others follow
  TaskTime compute;
  Seconds sums, sync, update, transfer;
  Bytes bytes;                 // that all devices send for it in an iteration
  Bytes memory;                // of the device that holds most
  std::vector<double> shares;  // per device: of the layer, relative to the largest share
  struct Input {
    int from = 0;  // the group that makes it
    Bytes bytes;   // that all devices send for it, there and back
  };
  std::vector<Input> inputs;
  Seconds total() const { return compute.total() + sums + sync + update + transfer; }
};

// What another configuration of a group would cost: how much longer an iteration takes with it when all
// others are chosen anew for it.
struct Alternative {
  LayerStrategy strategy;
  Seconds adds;        // infinite: there is no such configuration
  bool bound = false;  // it takes at least that much longer (its tasks were not measured)
};

// One assignment of the whole network, with its costs.
struct Assignment {
  std::string name;
  Seconds seconds;  // of an iteration; infinite: it cannot be
  std::vector<PlannedGroup> groups;
  Bytes bytes;   // that all devices send in an iteration
  Bytes memory;  // most that is held at a time, of the device that holds most (memory.h)
};

// Seconds of an iteration under a strategy, known better than by Eq. 1: by a simulation, which knows what
// communication hides under computing.
using Judge = std::function<Seconds(const Strategy&)>;

// A layer that simulations have cut otherwise than Plan::groups say.
struct ChangedLayer {
  std::string name;
  LayerStrategy before, after;
};

// How a plan was chosen by a Judge.
struct Judged {
  Seconds seconds;      // of the plan
  Seconds cheapest;     // of the optimum of Eq. 1
  Seconds lower_bound;  // what the first device computes: no choice of candidates takes less
  int strategies = 0;   // that were judged
  // Once branches may lie on devices of their own: no strategy takes less, wherever its layers lie.
  bool bounds_all = false;
  // Cuts over all devices that were found by simulations after that; nothing: they gained too little.
  Seconds before_cuts;  // what the plan took without
  std::vector<ChangedLayer> cuts;
  Seconds cuts_bound;  // no cuts of layers over the first devices take less; 0: nobody has searched
};

// Branches of the network that run side by side on devices of their own, and grids of devices that are
// transposed, found by simulations after a Judge chose the plan.
struct SideBySide {
  Seconds before;                    // what a simulated iteration takes without
  int sets = 0, of_sets = 0;         // sets of branches that were placed; that the network has
  int strategies = 0;                // that were simulated
  std::vector<ChangedLayer> layers;  // empty: nothing gained enough
};

// A point of the time-memory frontier.
struct Tradeoff {
  Seconds seconds;
  Bytes memory;
  bool chosen = false;  // the plan itself
};

// The plan's cuts with layers computed again so that a device holds less.
struct RecomputeTradeoff {
  Bytes memory;         // that the rank holds which holds most
  Seconds iteration;    // simulated
  Seconds added;        // computing of the rank that holds most without recomputation
  Seconds least_added;  // no choice that keeps to the memory adds less
  int layers = 0;       // that are computed again
};

// How a network is best cut, by Eq. 1 of the papers: an iteration takes the sum over layers of computing,
// sums and transfers, each as long as the slowest device or link takes; nothing overlaps.
struct Plan : Assignment {
  Strategy strategy;
  std::optional<Judged> judged;  // where a Judge chose; `proven` and `lower_bound` are of Eq. 1 all the same
  std::optional<SideBySide> side_by_side;  // where branches were looked at; costs are those without
  bool proven = true;
  Seconds lower_bound;   // of an iteration of any plan that fits; with `proven` the plan's own
  Bytes memory_limit;    // of a device; 0: none was given
  bool limited = false;  // the cheapest plan of all does not fit
  Seconds unlimited;     // what that one takes
  // Per group. Where memory limits the plan these are bounds from below: the other groups are chosen anew
  // without the memory limit.
  std::vector<Alternative> runners_up, by_sample;
  std::vector<Assignment> baselines;  // the built-in strategies, and `best-of-each` of their configurations
  std::vector<Tradeoff> frontier;     // by memory, where it was asked for
  std::vector<RecomputeTradeoff> recompute_frontier;  // by memory, where it was asked for
  std::string recomputation;  // what is computed again so that it fits, in words; empty: nothing
  Seconds pricing_took;       // that making the cost graph took, measuring included
  int candidates = 0;         // of all groups together
  SearchStatistics search;

  bool fits(Bytes memory) const { return memory_limit.count == 0 || memory <= memory_limit; }
};

inline constexpr int usual_frontier_points = 12;

struct PlanOptions {
  Bytes memory;             // that a device may hold; 0: without a limit
  int frontier_points = 0;  // at most so many of the frontier's corners
  // The plan is what takes least by it: of the optimum of Eq. 1, of optima with messages counted at less than
  // they take, since computing may hide them, and of the built-in strategies. Null: Eq. 1 decides.
  Judge judge{};
};

// Throws NothingFits, and UserError where the search would need too much memory.
Plan make_plan(const Network& network, const PricingOptions& pricing, CostModel& costs,
               const std::vector<int>& node_of_device, const PlanOptions& options = {});

// Whether make_plan finds a plan that fits.
bool fits(const Network& network, const PricingOptions& pricing, CostModel& costs,
          const std::vector<int>& node_of_device, Bytes memory);

}  // namespace cortado::plan
