#pragma once

#include "cortado/plan/frontier_point.h"
#include "cortado/plan/prepared.h"
#include "cortado/plan/search.h"

namespace cortado::plan {

// Searches of one prepared graph for least seconds + multiplier * bytes. Assignments are of the pruned graph.
class Multipliers {
 public:
  Multipliers(const CostGraph& graph, const SearchOptions& options);

  FrontierPoint least_seconds() { return at(0); }
  FrontierPoint fewest_bytes();
  FrontierPoint at(double multiplier);
  // The optimum at the multiplier at which both points cost the same; `multiplier` gets it. Where the optimum
  // costs as much as they do, the two are neighbours on the frontier.
  FrontierPoint between(const FrontierPoint& fewer_bytes, const FrontierPoint& less_seconds,
                        double& multiplier);

  const Prepared& start() const { return start_; }
  FrontierPoint point(std::vector<int> assignment) const;  // of the pruned graph
  FrontierPoint original(FrontierPoint point) const;       // in candidates of the graph
  int searches() const { return searches_; }

 private:
  std::vector<int> optimum(const CostGraph& graph);

  const CostGraph& graph_;
  Prepared start_;
  EliminationOrder order_;
  int searches_ = 0;
};

// Seconds + multiplier * bytes as vertex costs, rounded so that sums are exact. `error`: what a sum of the
// graph's costs can be off by.
CostGraph with_multiplier(const CostGraph& exact, double quantum, double multiplier, double& error);

}  // namespace cortado::plan
