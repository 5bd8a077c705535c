#include "cortado/plan/exhaustive.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/plan/prepared.h"

namespace cortado::plan {

void for_each_assignment(const CostGraph& graph, int64_t most,
                         const std::function<void(const std::vector<int>&, double)>& see) {
  double count = 1;
  for (int v = 0; v < graph.size(); ++v) count *= graph.candidates(v);
  if (count > static_cast<double>(most))
    throw UserError(
        fmt::format("exhaustive search would try {:.3g} assignments and may try {}. Allow fewer "
                    "candidates, or use the search by elimination.",
                    count, most));
  const CostGraph exact = rounded(graph, quantum_of(graph));
  std::vector<int> assignment(static_cast<size_t>(graph.size()));
  for (;;) {
    see(assignment, exact.seconds(assignment));
    int v = graph.size() - 1;
    for (; v >= 0 && ++assignment[v] == graph.candidates(v); --v) assignment[v] = 0;
    if (v < 0) return;
  }
}

namespace {

// Depth first, vertex by vertex. What costs as much as the best already, with the least that all the rest can
// cost, is left.
class DepthFirst {
 public:
  DepthFirst(const CostGraph& graph, int64_t most)
      : graph_(graph),
        most_(most),
        assignment_(static_cast<size_t>(graph.size())),
        before_(assignment_.size()),
        rest_(assignment_.size() + 1) {
    for (const CostGraph::Edge& edge : graph.edges())
      before_[static_cast<size_t>(std::max(edge.from, edge.to))].push_back(&edge);
    for (size_t v = assignment_.size(); v-- > 0;) {
      rest_[v] = rest_[v + 1] + std::ranges::min(graph.vertices()[v].seconds);
      for (const CostGraph::Edge* edge : before_[v]) rest_[v] += std::ranges::min(*edge->seconds);
    }
  }

  Optimum run() {
    best_.seconds = INFINITY;
    descend(0, 0);
    return best_;
  }

 private:
  void descend(int vertex, double seconds) {
    if (vertex == graph_.size()) {
      best_.seconds = seconds;
      best_.assignment = assignment_;
      return;
    }
    for (int c = 0; c < graph_.candidates(vertex); ++c) {
      if (++tried_ > most_) refuse();
      assignment_[static_cast<size_t>(vertex)] = c;
      const double with = seconds + added(vertex, c);
      if (with + rest_[static_cast<size_t>(vertex) + 1] < best_.seconds) descend(vertex + 1, with);
    }
  }

  // Seconds that a vertex adds, with its edges to those before it.
  double added(int vertex, int candidate) const {
    double seconds = graph_.vertices()[static_cast<size_t>(vertex)].seconds[static_cast<size_t>(candidate)];
    for (const CostGraph::Edge* edge : before_[static_cast<size_t>(vertex)]) {
      const auto from = static_cast<size_t>(assignment_[static_cast<size_t>(edge->from)]);
      const auto to = static_cast<size_t>(assignment_[static_cast<size_t>(edge->to)]);
      seconds += (*edge->seconds)[from * static_cast<size_t>(graph_.candidates(edge->to)) + to];
    }
    return seconds;
  }

  [[noreturn]] void refuse() const {
    throw UserError(fmt::format(
        "exhaustive search may try {} partial assignments, and that is not all. Allow fewer candidates, "
        "or use the search by elimination.",
        most_));
  }

  const CostGraph& graph_;
  const int64_t most_;
  int64_t tried_ = 0;
  std::vector<int> assignment_;
  std::vector<std::vector<const CostGraph::Edge*>> before_;  // per vertex: edges to earlier ones
  std::vector<double> rest_;  // per vertex: the least that it and those after it cost
  Optimum best_;
};

}  // namespace

Optimum exhaustive_search(const CostGraph& graph, int64_t most) {
  const CostGraph exact = rounded(graph, quantum_of(graph));
  Optimum best = DepthFirst(exact, most).run();
  if (std::isinf(best.seconds)) refuse_impossible(graph);
  best.bytes = graph.bytes(best.assignment);
  return best;
}

}  // namespace cortado::plan
