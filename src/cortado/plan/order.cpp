#include "cortado/plan/order.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "cortado/base/error.h"

namespace cortado::plan {
namespace {

using Neighbours = std::vector<std::set<int>>;

Neighbours neighbours_of(const CostGraph& graph) {
  Neighbours neighbours(static_cast<size_t>(graph.size()));
  for (const CostGraph::Edge& edge : graph.edges()) {
    neighbours[edge.from].insert(edge.to);
    neighbours[edge.to].insert(edge.from);
  }
  return neighbours;
}

void eliminate(Neighbours& neighbours, int vertex) {
  for (int a : neighbours[vertex]) {
    neighbours[a].erase(vertex);
    for (int b : neighbours[vertex])
      if (a != b) neighbours[a].insert(b);
  }
  neighbours[vertex].clear();
}

// Entries of the table over a vertex and its neighbours.
double weight(const CostGraph& graph, const Neighbours& neighbours, int vertex) {
  double size = graph.candidates(vertex);
  for (int other : neighbours[vertex]) size *= graph.candidates(other);
  return size;
}

// Entries of the edges that come in.
double fill(const CostGraph& graph, const Neighbours& neighbours, int vertex) {
  double entries = 0;
  for (int a : neighbours[vertex])
    for (int b : neighbours[vertex])
      if (a < b && !neighbours[a].contains(b))
        entries += double{1} * graph.candidates(a) * graph.candidates(b);
  return entries;
}

using Score = std::function<double(const Neighbours&, int)>;

// The least score first; of equal ones the least weight, then the lowest number. A vertex that goes changes
// the neighbours of its own, and the edges among the neighbours of those.
std::vector<int> greedy(const CostGraph& graph, const Score& score) {
  using Place = std::tuple<double, double, int>;
  Neighbours neighbours = neighbours_of(graph);
  auto place_of = [&](int vertex) {
    return Place{score(neighbours, vertex), weight(graph, neighbours, vertex), vertex};
  };
  std::vector<Place> places;
  for (int v = 0; v < graph.size(); ++v) places.push_back(place_of(v));
  std::set<Place> left(places.begin(), places.end());
  std::vector<int> order;
  while (!left.empty()) {
    const int vertex = std::get<int>(*left.begin());
    left.erase(left.begin());
    order.push_back(vertex);
    std::set<int> changed = neighbours[vertex];
    eliminate(neighbours, vertex);
    for (int other : std::set<int>(changed))
      changed.insert(neighbours[other].begin(), neighbours[other].end());
    for (int other : changed) {
      left.erase(places[other]);
      left.insert(places[other] = place_of(other));
    }
  }
  return order;
}

}  // namespace

EliminationOrder measured_order(const CostGraph& graph, const std::vector<int>& vertices) {
  EliminationOrder order{vertices, 0, {}, {}, {}};
  std::set<std::set<int>> edges;
  double total = 0, largest = 0, passing = 0;  // entries
  auto hold = [&](double entries, const std::set<int>& scope) {
    total += entries;
    if (entries <= largest) return;
    largest = entries;
    order.scope.assign(scope.begin(), scope.end());
  };
  for (const CostGraph::Edge& edge : graph.edges()) {
    edges.insert({edge.from, edge.to});
    hold(double{1} * graph.candidates(edge.from) * graph.candidates(edge.to), {edge.from, edge.to});
  }
  Neighbours neighbours = neighbours_of(graph);
  for (int vertex : vertices) {
    const double size = weight(graph, neighbours, vertex), message = size / graph.candidates(vertex);
    order.products += size;
    // A message over two vertices is added to the edge between them, if there is one.
    passing = std::max(passing, message);
    if (neighbours[vertex].size() >= 2 && edges.insert(neighbours[vertex]).second)
      hold(message, neighbours[vertex]);
    eliminate(neighbours, vertex);
  }
  auto bytes = [](double entries) {
    return Bytes{static_cast<int64_t>(std::min(entries * sizeof(double), 0x1p62))};
  };
  order.tables = bytes(total + passing);
  order.largest = bytes(largest);
  return order;
}

EliminationOrder elimination_order(const CostGraph& graph, Bytes limit) {
  const EliminationOrder by_weight = measured_order(
      graph, greedy(graph, [&](const Neighbours& n, int vertex) { return weight(graph, n, vertex); }));
  const EliminationOrder by_fill = measured_order(
      graph, greedy(graph, [&](const Neighbours& n, int vertex) { return fill(graph, n, vertex); }));
  if ((by_weight.tables > limit) != (by_fill.tables > limit))
    return by_weight.tables > limit ? by_fill : by_weight;
  if (by_weight.tables > limit) return by_weight.tables <= by_fill.tables ? by_weight : by_fill;
  return by_weight.products <= by_fill.products ? by_weight : by_fill;
}

}  // namespace cortado::plan
