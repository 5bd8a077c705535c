#include "cortado/plan/prune.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"

namespace cortado::plan {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A vertex's candidates that are left, with their costs beside what a neighbour has left.
struct Side {
  std::vector<double> costs;  // rows: own candidates
  int64_t columns = 0;
  std::vector<int64_t> witness;  // per row: the neighbour's candidate with which it does best beside others
  const double* row(int64_t index) const { return costs.data() + index * columns; }
};

// e(a, x) - e(b, x): what is impossible with a says nothing against b.
double difference(double a, double b) {
  if (a == infinity) return infinity;
  return b == infinity ? -infinity : a - b;
}

class Pruning {
 public:
  Pruning(const CostGraph& graph, Keep keep) : graph_(graph), keep_(keep) {
    edges_.resize(static_cast<size_t>(graph.size()));
    result_.kept.resize(edges_.size());
    for (int v = 0; v < graph.size(); ++v)
      for (int a = 0; a < graph.candidates(v); ++a) result_.kept[v].push_back(a);
    for (const CostGraph::Edge& edge : graph.edges()) {
      edges_[edge.from].push_back(&edge);
      edges_[edge.to].push_back(&edge);
    }
  }

  Pruned run() {
    std::vector<char> dirty(edges_.size(), 1);
    while (std::ranges::find(dirty, 1) != dirty.end()) dirty = round(dirty);
    result_.graph = reduced();
    return std::move(result_);
  }

 private:
  enum class Verdict : char { stays, impossible, identical, dominated };
  using Verdicts = std::vector<Verdict>;

  // Judges the dirty vertices against the candidates left before the round. Returns whom that concerns.
  std::vector<char> round(const std::vector<char>& dirty) {
    std::vector<Verdicts> verdicts(edges_.size());
    for (int v = 0; v < graph_.size(); ++v)
      if (dirty[v]) verdicts[v] = judge(v);
    std::vector<char> next(edges_.size(), 0);
    for (int v = 0; v < graph_.size(); ++v) {
      if (!dirty[v] || !take_out(v, verdicts[v])) continue;
      for (const CostGraph::Edge* edge : edges_[v]) next[edge->from == v ? edge->to : edge->from] = 1;
    }
    return next;
  }

  bool take_out(int vertex, const Verdicts& verdicts) {
    std::vector<int>& kept = result_.kept[vertex];
    std::vector<int> left;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (verdicts[i] == Verdict::stays) left.push_back(kept[i]);
      result_.impossible += verdicts[i] == Verdict::impossible;
      result_.identical += verdicts[i] == Verdict::identical;
      result_.dominated += verdicts[i] == Verdict::dominated;
    }
    const bool changed = left.size() < kept.size();
    kept = std::move(left);
    return changed;
  }

  Side side_of(int vertex, const CostGraph::Edge& edge) const {
    const bool from = edge.from == vertex;
    const std::vector<int>&own = result_.kept[vertex], &others = result_.kept[from ? edge.to : edge.from];
    const int64_t row = from ? graph_.candidates(edge.to) : 1, column = from ? 1 : graph_.candidates(edge.to);
    Side side{std::vector<double>(own.size() * others.size()), static_cast<int64_t>(others.size()), {}};
    constexpr size_t tile = 16;
    for (size_t x0 = 0; x0 < others.size(); x0 += tile)
      for (size_t a = 0; a < own.size(); ++a)
        for (size_t x = x0; x < std::min(others.size(), x0 + tile); ++x)
          side.costs[a * others.size() + x] = (*edge.seconds)[own[a] * row + others[x] * column];
    set_witnesses(side, static_cast<int64_t>(own.size()));
    return side;
  }

  // Most pairs fail at the x where a is best against the mean of the column.
  static void set_witnesses(Side& side, int64_t rows) {
    std::vector<double> mean(static_cast<size_t>(side.columns));
    for (int64_t a = 0; a < rows; ++a)
      for (int64_t x = 0; x < side.columns; ++x)
        mean[x] += std::isfinite(side.row(a)[x]) ? side.row(a)[x] / static_cast<double>(rows) : 0;
    for (int64_t a = 0; a < rows; ++a) {
      int64_t best = 0;
      for (int64_t x = 1; x < side.columns; ++x)
        if (side.row(a)[x] - mean[x] < side.row(a)[best] - mean[best]) best = x;
      side.witness.push_back(best);
    }
  }

  // slack(a, b) >= 0
  static bool at_most(const std::vector<double>& own, const std::vector<Side>& sides, int64_t a, int64_t b) {
    double bound = own[a] - own[b];
    for (const Side& side : sides)
      bound += difference(side.row(a)[side.witness[a]], side.row(b)[side.witness[a]]);
    if (!(bound >= 0)) return false;
    double slack = own[a] - own[b];
    for (const Side& side : sides) {
      double least = infinity;
      for (int64_t x = 0; x < side.columns; ++x)
        least = std::min(least, difference(side.row(a)[x], side.row(b)[x]));
      slack += least;
      if (slack == -infinity) return false;
    }
    return slack >= 0;
  }

  static bool identical(const std::vector<double>& own, const std::vector<Side>& sides, int64_t a,
                        int64_t b) {
    return own[a] == own[b] && std::ranges::all_of(sides, [&](const Side& side) {
             return std::equal(side.row(a), side.row(a) + side.columns, side.row(b));
           });
  }

  Verdicts judge(int vertex) const {
    const CostGraph::Vertex& costs = graph_.vertices()[vertex];
    const std::vector<int>& kept = result_.kept[vertex];
    std::vector<double> own;
    std::vector<Bytes> bytes;
    for (int a : kept) {
      own.push_back(costs.seconds[a]);
      bytes.push_back(costs.bytes[a]);
    }
    std::vector<Side> sides;
    for (const CostGraph::Edge* edge : edges_[vertex]) sides.push_back(side_of(vertex, *edge));
    const int64_t count = static_cast<int64_t>(kept.size());
    Verdicts verdicts(kept.size(), Verdict::stays);
    mark_impossible(own, sides, verdicts);
    const Verdicts possible = verdicts;
    parallel_for(count, [&](int64_t a) {
      for (int64_t b = 0; b < count && verdicts[a] == Verdict::stays; ++b)
        if (b != a && possible[b] == Verdict::stays) verdicts[a] = against(own, bytes, sides, a, b);
    });
    return verdicts;
  }

  Verdict against(const std::vector<double>& own, const std::vector<Bytes>& bytes,
                  const std::vector<Side>& sides, int64_t a, int64_t b) const {
    if (keep_ == Keep::frontier && bytes[b] > bytes[a]) return Verdict::stays;
    if (!at_most(own, sides, a, b)) return Verdict::stays;
    const bool both = at_most(own, sides, b, a) && (keep_ == Keep::optimum || bytes[a] == bytes[b]);
    if (both && a < b) return Verdict::stays;
    return both && identical(own, sides, a, b) ? Verdict::identical : Verdict::dominated;
  }

  // One candidate stays even so: the search then finds that nothing is possible.
  static void mark_impossible(const std::vector<double>& own, const std::vector<Side>& sides,
                              Verdicts& verdicts) {
    for (size_t a = 0; a < own.size(); ++a) {
      bool never = own[a] == infinity;
      for (const Side& side : sides) {
        const double* row = side.row(static_cast<int64_t>(a));
        never |= std::all_of(row, row + side.columns, [](double cost) { return cost == infinity; });
      }
      if (never) verdicts[a] = Verdict::impossible;
    }
    if (std::ranges::find(verdicts, Verdict::stays) == verdicts.end()) verdicts[0] = Verdict::stays;
  }

  CostGraph reduced() const {
    CostGraph graph;
    for (int v = 0; v < graph_.size(); ++v) {
      const CostGraph::Vertex& vertex = graph_.vertices()[v];
      std::vector<double> seconds;
      std::vector<Bytes> bytes;
      for (int a : result_.kept[v]) {
        seconds.push_back(vertex.seconds[a]);
        bytes.push_back(vertex.bytes[a]);
      }
      graph.add_vertex(vertex.name, std::move(seconds), std::move(bytes));
    }
    for (const CostGraph::Edge& edge : graph_.edges()) {
      const std::vector<int>&rows = result_.kept[edge.from], &columns = result_.kept[edge.to];
      if (rows.size() * columns.size() == edge.seconds->size()) {
        graph.add_edge(edge.from, edge.to, edge.seconds);
        continue;
      }
      std::vector<double> seconds;
      seconds.reserve(rows.size() * columns.size());
      for (int a : rows)
        for (int b : columns) seconds.push_back((*edge.seconds)[int64_t{a} * graph_.candidates(edge.to) + b]);
      graph.add_edge(edge.from, edge.to, std::move(seconds));
    }
    return graph;
  }

  const CostGraph& graph_;
  Keep keep_;
  std::vector<std::vector<const CostGraph::Edge*>> edges_;
  Pruned result_;
};

}  // namespace

std::vector<int> Pruned::original(const std::vector<int>& assignment) const {
  std::vector<int> result(assignment.size());
  for (size_t v = 0; v < assignment.size(); ++v) result[v] = kept[v][assignment[v]];
  return result;
}

Pruned pruned(const CostGraph& graph, Keep keep) { return Pruning(graph, keep).run(); }

}  // namespace cortado::plan
