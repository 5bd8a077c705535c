#pragma once

#include "cortado/plan/elimination.h"
#include "cortado/plan/prune.h"

namespace cortado::plan {

// A graph as every search begins: parallel edges merged, costs rounded, candidates pruned.
struct Prepared {
  CostGraph exact;  // the whole graph, merged and rounded
  double quantum = 1;
  Pruned pruned;  // all of `exact` without pruning
  int merged_edges = 0;
};
Prepared prepare(const CostGraph& graph, Keep keep, bool prune);

// Throws UserError when an order's tables exceed the limit.
void check_order(const CostGraph& graph, const EliminationOrder& order, Bytes limit);
// The order in which to eliminate the vertices, checked.
EliminationOrder checked_order(const CostGraph& graph, Bytes limit);

// Throws UserError: nothing is possible.
[[noreturn]] void refuse_impossible(const CostGraph& graph);

}  // namespace cortado::plan
