#pragma once

#include <functional>
#include <vector>

#include "cortado/plan/cost_graph.h"
#include "cortado/plan/elimination.h"

namespace cortado::plan {

// Whether candidates that cannot win are taken out first (prune.h). Finding them takes about as long as to
// eliminate vertices with few neighbours and a few hundred candidates, and far less than to eliminate others.
enum class PruneFirst { never, where_it_pays, always };

struct SearchOptions {
  Bytes table_limit{int64_t{4} << 30};  // of all tables together; beyond it a search is refused
  PruneFirst prune = PruneFirst::where_it_pays;
};

// What a search did.
struct SearchStatistics {
  EliminationCounts eliminations;
  int impossible = 0, identical = 0, dominated = 0;  // candidates taken out before
  double products = 0;                               // additions of the min-plus products
  Bytes tables, largest_table;
  Seconds seconds;
};

// One of the assignments of least seconds. The least is of the graph's costs rounded by quantum_of(), the
// same whatever the order of vertices and edges; graph.seconds(assignment) differs from it by rounding alone.
struct Optimum {
  std::vector<int> assignment;  // candidate per vertex
  double seconds = 0;
  Bytes bytes;
  bool proven = true;
  SearchStatistics statistics;
};

// The optimum of any graph, by pruning (prune.h), then elimination of edges, nodes and vertices in general
// (elimination.h), then choosing in reverse. The same graph gives the same assignment each time, on any
// number of threads. Throws UserError when the tables would take more than the limit, or when no assignment
// is possible.
Optimum search(const CostGraph& graph, const SearchOptions& options = {});

// Returns, for each vertex and candidate, the least seconds of all assignments in which the vertex takes the
// candidate; infinity: there is none. What a vertex loses by its second-best candidate is the second-lowest
// of its values less the lowest. Costs about three searches. Throws as search does.
std::vector<std::vector<double>> min_marginals(const CostGraph& graph, const SearchOptions& options = {});

// Lazy measurement. Costs of vertices that are not measured are bounds from below. Measures what the optimum
// uses and searches again, until the optimum is all measured. Then it is the optimum of the all-measured
// graph too: that one's costs are nowhere lower, and the assignment's are the same.
//   is_measured(vertex, candidate)
//   measure(graph, vertex, candidate): sets that cost, and any others that are thereby known
struct LazyOptimum {
  Optimum optimum;
  int searches = 0, measurements = 0;
};
LazyOptimum lazy_search(CostGraph graph, const std::function<bool(int, int)>& is_measured,
                        const std::function<void(CostGraph&, int, int)>& measure,
                        const SearchOptions& options = {});

}  // namespace cortado::plan
