#include "cortado/plan/prepared.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"

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

}  // namespace

Prepared prepare(const CostGraph& graph, Keep keep, bool prune) {
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

}  // namespace cortado::plan
