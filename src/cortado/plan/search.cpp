#include "cortado/plan/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/plan/prepared.h"

namespace cortado::plan {
namespace {

std::string readable(Bytes bytes) {
  const double mebibytes = static_cast<double>(bytes.count) / (1 << 20);
  return mebibytes < 1024 ? fmt::format("{:.1f} MiB", mebibytes)
                          : fmt::format("{:.1f} GiB", mebibytes / 1024);
}

// The vertices of a table with how many candidates each has, the first few of them.
std::string described(const CostGraph& graph, const std::vector<int>& scope) {
  constexpr size_t shown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(scope.size(), shown); ++i)
    text += fmt::format("{}{} ({})", i > 0 ? ", " : "", graph.vertices()[scope[i]].name,
                        graph.candidates(scope[i]));
  if (scope.size() > shown) text += fmt::format(" and {} more", scope.size() - shown);
  return text;
}

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

Prepared prepared(const CostGraph& graph, Keep keep, bool prune) {
  Prepared result;
  result.quantum = quantum_of(graph);
  result.exact = without_parallel_edges(rounded(graph, result.quantum), &result.merged_edges);
  if (prune) {
    result.pruned = pruned(result.exact, keep);
    return result;
  }
  result.pruned.graph = result.exact;
  for (int v = 0; v < graph.size(); ++v) {
    std::vector<int>& kept = result.pruned.kept.emplace_back();
    for (int a = 0; a < graph.candidates(v); ++a) kept.push_back(a);
  }
  return result;
}

void check_order(const CostGraph& graph, const EliminationOrder& order, Bytes limit) {
  if (order.tables <= limit) return;
  throw UserError(fmt::format(
      "the exact search needs {} for its tables and may use {}; the largest, of {}, is over the candidates "
      "of "
      "{}. Allow fewer candidates for these layers, or more memory.",
      readable(order.tables), readable(limit), readable(order.largest), described(graph, order.scope)));
}

EliminationOrder checked_order(const CostGraph& graph, Bytes limit) {
  EliminationOrder order = elimination_order(graph, limit);
  check_order(graph, order, limit);
  return order;
}

void refuse_impossible(const CostGraph& graph) {
  for (const CostGraph::Vertex& vertex : graph.vertices()) {
    if (std::ranges::all_of(vertex.seconds, [](double cost) { return std::isinf(cost); }))
      throw UserError(fmt::format("no assignment is possible: '{}' has no possible candidate.", vertex.name));
  }
  throw UserError("no assignment is possible: every combination of candidates has an infinite cost.");
}

Optimum search(const CostGraph& graph, const SearchOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Prepared start = prepared(graph, Keep::optimum, options.prune == PruneFirst::always);
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
  statistics.seconds = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
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
