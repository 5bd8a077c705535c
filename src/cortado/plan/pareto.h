#pragma once

#include <cstdint>
#include <optional>

#include "cortado/plan/frontier_point.h"
#include "cortado/plan/search.h"

namespace cortado::plan {

// Elimination with sets of pairs (seconds, bytes): looks for an assignment of at most `limit` bytes that
// takes less than `best_seconds`. `bound` is `graph` with with_multiplier's costs; it bounds from below
// what the rest can cost.
struct ParetoProblem {
  const CostGraph& graph;  // exact seconds, and bytes
  const CostGraph& bound;
  double multiplier = 0;
  double error = 0;  // of sums of bound's costs
  Bytes limit;
  double best_seconds = 0;
  Bytes table_limit;
  int64_t most_points = 0;  // pairs made, after which it gives up
  size_t set_limit = 0;     // pairs kept in a set; others are dropped and the search is not complete. 0: all
};
struct ParetoResult {
  std::optional<FrontierPoint> better;  // the best one found
  bool complete = true;                 // there is none better
  int64_t points = 0;
};
ParetoResult pareto_search(const ParetoProblem& problem);

}  // namespace cortado::plan
