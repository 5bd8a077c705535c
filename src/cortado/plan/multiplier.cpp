#include "cortado/plan/multiplier.h"

#include <algorithm>
#include <cmath>

#include "cortado/base/error.h"

namespace cortado::plan {
namespace {

// Bytes in place of seconds; what is impossible stays so.
CostGraph of_bytes(const CostGraph& graph) {
  CostGraph result;
  for (const CostGraph::Vertex& vertex : graph.vertices()) {
    std::vector<double> costs;
    for (size_t a = 0; a < vertex.seconds.size(); ++a)
      costs.push_back(std::isinf(vertex.seconds[a]) ? INFINITY : static_cast<double>(vertex.bytes[a].count));
    result.add_vertex(vertex.name, std::move(costs), vertex.bytes);
  }
  for (const CostGraph::Edge& edge : graph.edges()) {
    if (!edge.infinite) continue;
    std::vector<double> costs(edge.seconds->size());
    for (size_t i = 0; i < costs.size(); ++i) costs[i] = std::isinf((*edge.seconds)[i]) ? INFINITY : 0;
    result.add_edge(edge.from, edge.to, std::move(costs));
  }
  return result;
}

}  // namespace

CostGraph with_multiplier(const CostGraph& exact, double quantum, double multiplier, double& error) {
  CostGraph result;
  for (const CostGraph::Vertex& vertex : exact.vertices()) {
    std::vector<double> costs = vertex.seconds;
    for (size_t a = 0; a < costs.size(); ++a)
      costs[a] += multiplier * static_cast<double>(vertex.bytes[a].count);
    result.add_vertex(vertex.name, std::move(costs), vertex.bytes);
  }
  for (const CostGraph::Edge& edge : exact.edges()) result.add_edge(edge);
  // The graph's own quantum has room for sums 512 times as large; edges then stay as they are.
  const double needed = quantum_of(result) / 256;
  error = std::max(quantum, needed) * (exact.size() + static_cast<double>(exact.edges().size()) + 1);
  if (needed > quantum) return rounded(result, needed);
  for (int v = 0; v < result.size(); ++v)
    for (int a = 0; a < result.candidates(v); ++a) {
      const double cost = result.vertices()[v].seconds[a];
      if (std::isfinite(cost)) result.set_seconds(v, a, std::nearbyint(cost / quantum) * quantum);
    }
  return result;
}

Multipliers::Multipliers(const CostGraph& graph, const SearchOptions& options)
    : graph_(graph),
      start_(prepare(graph, Keep::frontier, options.prune != PruneFirst::never)),
      order_(checked_order(start_.pruned.graph, options.table_limit)) {}

std::vector<int> Multipliers::optimum(const CostGraph& graph) {
  ++searches_;
  const Elimination elimination(graph, order_.vertices, false);
  if (std::isinf(elimination.optimum())) refuse_impossible(graph_);
  return elimination.assignment();
}

FrontierPoint Multipliers::point(std::vector<int> assignment) const {
  const double seconds = start_.pruned.graph.seconds(assignment);
  const Bytes bytes = start_.pruned.graph.bytes(assignment);
  return {std::move(assignment), seconds, bytes};
}

FrontierPoint Multipliers::original(FrontierPoint point) const {
  point.assignment = start_.pruned.original(point.assignment);
  return point;
}

FrontierPoint Multipliers::fewest_bytes() { return point(optimum(of_bytes(start_.pruned.graph))); }

FrontierPoint Multipliers::at(double multiplier) {
  double error = 0;
  return point(optimum(with_multiplier(start_.pruned.graph, start_.quantum, multiplier, error)));
}

FrontierPoint Multipliers::between(const FrontierPoint& fewer_bytes, const FrontierPoint& less_seconds,
                                   double& multiplier) {
  ensure(fewer_bytes.bytes < less_seconds.bytes && fewer_bytes.seconds > less_seconds.seconds,
         "neither is better in both");
  multiplier = (fewer_bytes.seconds - less_seconds.seconds) /
               static_cast<double>(less_seconds.bytes.count - fewer_bytes.bytes.count);
  return at(multiplier);
}

}  // namespace cortado::plan
