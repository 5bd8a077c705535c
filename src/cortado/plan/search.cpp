#include "cortado/plan/search.h"

#include <chrono>
#include <cmath>

#include "cortado/base/error.h"
#include "cortado/base/seconds_since.h"
#include "cortado/plan/prepared.h"

namespace cortado::plan {
namespace {

// Measured: an addition of the products takes 0.04 ns, a pair of a vertex' candidates at one of its edges
// some 10 ns until pruning ends.
bool pays_to_prune(const CostGraph& graph, const EliminationOrder& order, Bytes limit) {
  double pairs = 0;
  for (const CostGraph::Edge& edge : graph.edges()) {
    for (int end : {edge.from, edge.to}) pairs += double{1} * graph.candidates(end) * graph.candidates(end);
  }
  return order.tables > limit || order.products > 250 * pairs;
}

}  // namespace

Optimum search(const CostGraph& graph, const SearchOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Prepared start = prepare(graph, Keep::optimum, options.prune == PruneFirst::always);
  EliminationOrder order = elimination_order(start.pruned.graph, options.table_limit);
  if (options.prune == PruneFirst::where_it_pays && pays_to_prune(start.exact, order, options.table_limit)) {
    start.pruned = pruned(start.exact, Keep::optimum);
    order = elimination_order(start.pruned.graph, options.table_limit);
  }
  check_order(start.pruned.graph, order, options.table_limit);
  const Elimination elimination(start.pruned.graph, order.vertices, false);
  if (std::isinf(elimination.optimum())) refuse_impossible(graph);
  Optimum result;
  result.assignment = start.pruned.original(elimination.assignment());
  result.seconds = elimination.optimum();
  ensure(start.exact.seconds(result.assignment) == result.seconds,
         "the assignment costs what the search found");
  result.bytes = graph.bytes(result.assignment);
  SearchStatistics& statistics = result.statistics;
  statistics.eliminations = elimination.counts();
  statistics.eliminations.edges += start.merged_edges;
  statistics.impossible = start.pruned.impossible;
  statistics.identical = start.pruned.identical;
  statistics.dominated = start.pruned.dominated;
  statistics.products = order.products;
  statistics.tables = order.tables;
  statistics.largest_table = order.largest;
  statistics.seconds = seconds_since(begin);
  return result;
}

LazyOptimum lazy_search(CostGraph graph, const std::function<bool(int, int)>& is_measured,
                        const std::function<void(CostGraph&, int, int)>& measure,
                        const SearchOptions& options) {
  LazyOptimum result;
  for (bool complete = false; !complete;) {
    result.optimum = search(graph, options);
    ++result.searches;
    complete = true;
    for (int v = 0; v < graph.size(); ++v) {
      const int candidate = result.optimum.assignment[v];
      if (is_measured(v, candidate)) continue;
      measure(graph, v, candidate);
      ensure(is_measured(v, candidate), "what was measured is known as measured");
      ++result.measurements;
      complete = false;
    }
  }
  return result;
}

}  // namespace cortado::plan
