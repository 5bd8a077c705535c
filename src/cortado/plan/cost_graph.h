#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cortado/base/units.h"

namespace cortado::plan {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// Costs in seconds, shared between copies of a graph. Infinity: impossible.
using Costs = std::shared_ptr<const std::vector<double>>;

// What the search minimizes (Eq. 1 of both planning papers), free of networks and machines: each vertex takes
// one of its candidates; an assignment (a candidate per vertex) costs the sum of its vertices' and edges'
// costs. Costs are doubles: single precision would halve the time of the search, but a sum of a few hundred
// costs would then round enough to prefer another assignment than exhaustive search does.
class CostGraph {
 public:
  struct Vertex {
    std::string name;
    std::vector<double> seconds;  // per candidate
    std::vector<Bytes> bytes;     // per candidate, on the most loaded device
  };
  // Costs of `from`'s candidates (rows) with `to`'s (columns), row-major. Parallel edges add.
  struct Edge {
    int from = 0, to = 0;
    Costs seconds;
    double largest = 0;     // of the finite costs, by magnitude
    bool infinite = false;  // has infinite costs
  };

  // Both throw InternalError unless sizes agree and every cost is a number or +infinity. `bytes` may be
  // empty: zero for all. add_vertex returns the vertex's number.
  int add_vertex(std::string name, std::vector<double> seconds, std::vector<Bytes> bytes = {});
  void add_edge(int from, int to, std::vector<double> seconds);
  void add_edge(int from, int to, Costs seconds);
  // An edge whose costs are checked, for ends with so many candidates; of another graph, or with costs
  // rounded.
  static Edge checked_edge(int from, int to, Costs seconds);
  void add_edge(Edge checked) { edges_.push_back(std::move(checked)); }
  void set_seconds(int vertex, int candidate, double seconds);

  int size() const { return static_cast<int>(vertices_.size()); }
  int candidates(int vertex) const { return static_cast<int>(vertices_[vertex].seconds.size()); }
  const std::vector<Vertex>& vertices() const { return vertices_; }
  const std::vector<Edge>& edges() const { return edges_; }

  // Cost of an assignment: the sum in the order of vertices, then edges.
  double seconds(std::span<const int> assignment) const;
  Bytes bytes(std::span<const int> assignment) const;

 private:
  std::vector<Vertex> vertices_;
  std::vector<Edge> edges_;
};

// The graph with one edge for each pair of adjacent vertices, from the lower to the higher: edge elimination
// (DeePa, Eq. 3). `merged`: how many edges went.
CostGraph without_parallel_edges(const CostGraph& graph, int* merged = nullptr);

// The graph with one more candidate for each vertex: it costs `seconds`, infinite where there is none, and
// nothing together with whatever others take.
CostGraph with_free_candidates(const CostGraph& graph, std::span<const double> seconds);

// Sums of doubles depend on their order, and with it which of two nearly equal assignments wins. So the
// search rounds every cost to a multiple of a quantum, a power of two so large that no sum of the graph's
// costs needs more than 53 bits: then all sums are exact, in any order; ties are ties; and equal optima are
// equal bit for bit. The quantum is at most 2^-44 of the graph's largest possible cost, which leaves room for
// sums 512 times that (multipliers of bytes).
double quantum_of(const CostGraph& graph);
CostGraph rounded(const CostGraph& graph, double quantum);

}  // namespace cortado::plan
