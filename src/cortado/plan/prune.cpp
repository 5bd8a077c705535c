#include "cortado/plan/prune.h"

#include <algorithm>
#include <cmath>

#include "cortado/base/error.h"
#include "cortado/plan/threads.h"

namespace cortado::plan {
namespace {

// The costs of a vertex's candidates that are left with those that a neighbour has left, the neighbour's x
// outermost, so that all of the vertex's candidates beside one x lie together.
struct Side {
  std::vector<double> own;  // empty: the edge's own costs lie like that
  const double* costs = nullptr;
  int64_t candidates = 0, columns = 0;
  std::vector<int64_t> witness;  // per candidate: the x with which it does best beside the others
  const double* with(int64_t x) const { return costs + x * candidates; }
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
    result_.graph = restricted(graph_, result_.kept);
    return std::move(result_);
  }

 private:
  enum class Verdict : char { stays, impossible, identical, dominated };
  using Verdicts = std::vector<Verdict>;

  // Judges the dirty vertices against the candidates left before the round. Returns whom that concerns.
  std::vector<char> round(const std::vector<char>& dirty) {
    std::vector<Verdicts> verdicts(edges_.size());
    double pairs = 0;
    for (const CostGraph::Edge& edge : graph_.edges())
      pairs += double{1} * graph_.candidates(edge.from) * graph_.candidates(edge.to);
    parallel_for_work(graph_.size(), pairs, [&](int64_t v) {
      if (dirty[v]) verdicts[v] = judge(static_cast<int>(v));
    });
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
    Side side{
        {}, edge.seconds->data(), static_cast<int64_t>(own.size()), static_cast<int64_t>(others.size()), {}};
    if (from || own.size() * others.size() < edge.seconds->size()) {
      const int64_t width = graph_.candidates(edge.to), stride = from ? width : 1,
                    other_stride = from ? 1 : width;
      side.own.resize(own.size() * others.size());
      side.costs = side.own.data();
      constexpr size_t tile = 16;  // so that both sides of a transposition stay in the cache
      for (size_t a0 = 0; a0 < own.size(); a0 += tile)
        for (size_t x = 0; x < others.size(); ++x)
          for (size_t a = a0; a < std::min(own.size(), a0 + tile); ++a)
            side.own[x * own.size() + a] = (*edge.seconds)[own[a] * stride + others[x] * other_stride];
    }
    set_witnesses(side);
    return side;
  }

  // Most pairs fail at the x where a is best against the mean of all candidates.
  static void set_witnesses(Side& side) {
    std::vector<double> best(static_cast<size_t>(side.candidates), infinity);
    side.witness.assign(best.size(), 0);
    for (int64_t x = 0; x < side.columns; ++x) {
      double mean = 0;
      for (int64_t a = 0; a < side.candidates; ++a)
        mean += std::isfinite(side.with(x)[a]) ? side.with(x)[a] : 0;
      mean /= static_cast<double>(side.candidates);
      for (int64_t a = 0; a < side.candidates; ++a) {
        if (side.with(x)[a] - mean >= best[a]) continue;
        best[a] = side.with(x)[a] - mean;
        side.witness[a] = x;
      }
    }
  }

  // Candidates b for which the costs beside one x at each neighbour do not rule out slack(a, b) >= 0.
  static std::vector<int> perhaps_at_most(const std::vector<double>& own, const std::vector<Side>& sides,
                                          size_t a) {
    std::vector<double> bound(own.size());
    for (size_t b = 0; b < own.size(); ++b) bound[b] = own[a] - own[b];
    for (const Side& side : sides) {
      const double* costs = side.with(side.witness[a]);
      for (size_t b = 0; b < own.size(); ++b) bound[b] += costs[a] - costs[b];
    }
    std::vector<int> others;
    for (size_t b = 0; b < own.size(); ++b)
      if (bound[b] >= 0 && b != a) others.push_back(static_cast<int>(b));
    return others;
  }

  // Candidates b of `others` with slack(a, b) >= 0. Minima over the x seen so far bound the slack from above;
  // who falls below 0 is out.
  static void keep_at_most(const std::vector<double>& own, const std::vector<Side>& sides, size_t a,
                           std::vector<int>& others) {
    if (others.empty()) return;
    std::vector<std::vector<double>> least(sides.size(), std::vector<double>(own.size(), infinity));
    auto drop = [&](size_t seen) {
      std::erase_if(others, [&](int b) {
        double bound = own[a] - own[b];
        for (size_t s = 0; s < seen; ++s) bound += least[s][b];
        for (size_t s = seen; s < sides.size(); ++s) {
          const double* costs = sides[s].with(sides[s].witness[a]);
          bound += difference(costs[a], costs[b]);
        }
        return !(bound >= 0);
      });
    };
    for (size_t s = 0; s < sides.size(); ++s) {
      for (int64_t x = 0; x < sides[s].columns && !others.empty(); ++x) {
        const double* costs = sides[s].with(x);
        for (int b : others) least[s][b] = std::min(least[s][b], difference(costs[a], costs[b]));
        if (x % 8 == 7 || x + 1 == sides[s].columns) drop(s + 1);
      }
    }
    drop(sides.size());
  }

  static bool identical(const std::vector<double>& own, const std::vector<Side>& sides, int64_t a,
                        int64_t b) {
    if (own[a] != own[b]) return false;
    for (const Side& side : sides)
      for (int64_t x = 0; x < side.columns; ++x)
        if (side.with(x)[a] != side.with(x)[b]) return false;
    return true;
  }

  Verdicts judge(int vertex) const {
    const CostGraph::Vertex& costs = graph_.vertices()[vertex];
    const std::vector<int>& kept = result_.kept[vertex];
    const int count = static_cast<int>(kept.size());
    std::vector<double> own;
    for (int a : kept) own.push_back(costs.seconds[a]);
    std::vector<Side> sides;
    for (const CostGraph::Edge* edge : edges_[vertex]) sides.push_back(side_of(vertex, *edge));
    Verdicts verdicts(kept.size(), Verdict::stays);
    mark_impossible(own, sides, verdicts);
    std::vector<std::vector<int>> over(kept.size());  // per candidate: those that dominate it, or are as good
    for (int a = 0; a < count; ++a) {
      if (verdicts[a] != Verdict::stays) continue;
      over[a] = perhaps_at_most(own, sides, static_cast<size_t>(a));
      std::erase_if(over[a], [&](int b) {
        const bool more_bytes = keep_ == Keep::frontier && costs.bytes[kept[b]] > costs.bytes[kept[a]];
        return more_bytes || verdicts[b] != Verdict::stays;
      });
      keep_at_most(own, sides, static_cast<size_t>(a), over[a]);
    }
    for (int a = 0; a < count; ++a) {
      for (int b : over[a]) {
        const bool both = std::ranges::binary_search(over[b], a);
        if (both && a < b) continue;
        verdicts[a] = both && identical(own, sides, a, b) ? Verdict::identical : Verdict::dominated;
        break;
      }
    }
    return verdicts;
  }

  // One candidate stays even so: the search then finds that nothing is possible.
  static void mark_impossible(const std::vector<double>& own, const std::vector<Side>& sides,
                              Verdicts& verdicts) {
    for (size_t a = 0; a < own.size(); ++a) {
      bool never = own[a] == infinity;
      for (const Side& side : sides) {
        int64_t x = 0;
        while (x < side.columns && side.with(x)[a] == infinity) ++x;
        never |= x == side.columns;
      }
      if (never) verdicts[a] = Verdict::impossible;
    }
    if (std::ranges::find(verdicts, Verdict::stays) == verdicts.end()) verdicts[0] = Verdict::stays;
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

CostGraph restricted(const CostGraph& graph, const std::vector<std::vector<int>>& kept) {
  CostGraph result;
  for (int v = 0; v < graph.size(); ++v) {
    const CostGraph::Vertex& vertex = graph.vertices()[v];
    std::vector<double> seconds;
    std::vector<Bytes> bytes;
    for (int a : kept[v]) {
      seconds.push_back(vertex.seconds[a]);
      bytes.push_back(vertex.bytes[a]);
    }
    result.add_vertex(vertex.name, std::move(seconds), std::move(bytes));
  }
  for (const CostGraph::Edge& edge : graph.edges()) {
    const std::vector<int>&rows = kept[edge.from], &columns = kept[edge.to];
    if (rows.size() * columns.size() == edge.seconds->size()) {
      result.add_edge(edge);
      continue;
    }
    std::vector<double> seconds;
    seconds.reserve(rows.size() * columns.size());
    for (int a : rows)
      for (int b : columns) seconds.push_back((*edge.seconds)[int64_t{a} * graph.candidates(edge.to) + b]);
    result.add_edge(edge.from, edge.to, std::move(seconds));
  }
  return result;
}

Pruned pruned(const CostGraph& graph, Keep keep) { return Pruning(graph, keep).run(); }

}  // namespace cortado::plan
