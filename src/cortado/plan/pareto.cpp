#include "cortado/plan/pareto.h"

#include <algorithm>
#include <cmath>

#include "cortado/base/error.h"
#include "cortado/plan/marginals.h"
#include "cortado/plan/prepared.h"

namespace cortado::plan {
namespace {

// What a part of the graph costs, and by which candidates (a node of the trail).
struct Pair {
  double seconds = 0;
  int64_t bytes = 0;
  int64_t trail = -1;
};
using Set = std::vector<Pair>;  // bytes rise, seconds fall

// How a pair came about: by a candidate of a vertex, or as the sum of two others.
struct Trail {
  int vertex = -1, candidate = -1;
  int64_t left = -1, right = -1;
};

// Leaves the pairs that no other one beats in both.
void keep_best(Set& set) {
  std::ranges::sort(set, [](const Pair& a, const Pair& b) {
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.trail < b.trail;
  });
  size_t kept = 0;
  for (const Pair& pair : set)
    if (kept == 0 || pair.seconds < set[kept - 1].seconds) set[kept++] = pair;
  set.resize(kept);
}

class ParetoSearch {
 public:
  ParetoSearch(const ParetoProblem& problem, const Elimination& elimination)
      : problem_(problem),
        elimination_(elimination),
        marginals_(marginals_of(elimination)),
        threshold_(problem.best_seconds + problem.multiplier * static_cast<double>(problem.limit.count) +
                   problem.error),
        messages_(elimination.buckets().size()),
        children_(messages_.size()),
        edges_(messages_.size()),
        assignment_(messages_.size()),
        fewest_below_(messages_.size()) {
    std::vector<int> bucket_of(messages_.size());
    for (size_t b = 0; b < messages_.size(); ++b)
      bucket_of[elimination.buckets()[b].vertex] = static_cast<int>(b);
    for (const CostGraph::Edge& edge : problem.graph.edges())
      edges_[std::min(bucket_of[edge.from], bucket_of[edge.to])].push_back(&edge);
    for (size_t b = 0; b < messages_.size(); ++b) {
      const Elimination::Bucket& bucket = elimination.buckets()[b];
      const int64_t own = std::ranges::min(problem.graph.vertices()[bucket.vertex].bytes).count;
      fewest_below_[b] += own;
      fewest_ += own;
      if (bucket.parent < 0) continue;
      children_[bucket.parent].push_back(static_cast<int>(b));
      fewest_below_[bucket.parent] += fewest_below_[b];
    }
  }

  ParetoResult run() {
    Set whole{Pair{}};
    for (size_t b = 0; b < messages_.size() && !gave_up(); ++b) {
      make_message(static_cast<int>(b));
      for (int child : children_[b]) messages_[child] = {};
    }
    for (size_t b = 0; b < messages_.size() && !gave_up(); ++b)
      if (elimination_.buckets()[b].parent < 0) whole = sum(whole, messages_[b][0], INFINITY);
    if (gave_up()) result_.complete = false;
    for (const Pair& pair : whole) {
      const bool complete_pair = !gave_up() && pair.bytes <= problem_.limit.count;
      const double best = result_.better ? result_.better->seconds : problem_.best_seconds;
      if (!complete_pair || pair.seconds >= best) continue;
      follow(pair.trail);
      result_.better = FrontierPoint{assignment_, pair.seconds, {pair.bytes}};
    }
    return std::move(result_);
  }

 private:
  bool gave_up() const { return result_.points > problem_.most_points; }

  // The sets over the message's scope: for each choice of candidates there, those of the vertex in turn.
  void make_message(int b) {
    const Elimination::Bucket& bucket = elimination_.buckets()[b];
    int64_t entries = 1;
    for (int size : bucket.message.sizes) entries *= size;
    messages_[b].resize(static_cast<size_t>(entries));
    for (int64_t entry = 0; entry < entries && !gave_up(); ++entry) {
      int64_t rest = entry;
      for (size_t i = bucket.message.scope.size(); i-- > 0; rest /= bucket.message.sizes[i])
        assignment_[bucket.message.scope[i]] = static_cast<int>(rest % bucket.message.sizes[i]);
      const double outside = bucket.parent >= 0
                                 ? (*marginals_.outside[b].values)[marginals_.outside[b].index(assignment_)]
                                 : elimination_.optimum() - bucket.message.values->at(0);
      Set& set = messages_[b][entry];
      for (int a = 0; a < problem_.graph.candidates(bucket.vertex); ++a) {
        assignment_[bucket.vertex] = a;
        double least = outside;
        for (const Table& table : bucket.tables) least += (*table.values)[table.index(assignment_)];
        if (least <= threshold_) add_candidate(b, a, outside, set);
      }
      keep_best(set);
      thin(set);
    }
  }

  // Pairs of the vertex's candidate a, with those of the messages that came in.
  void add_candidate(int b, int a, double outside, Set& set) {
    const int v = elimination_.buckets()[b].vertex;
    const CostGraph::Vertex& vertex = problem_.graph.vertices()[v];
    Pair own{vertex.seconds[a], vertex.bytes[a].count, -1};
    for (const CostGraph::Edge* edge : edges_[b])
      own.seconds += (*edge->seconds)[int64_t{assignment_[edge->from]} * problem_.graph.candidates(edge->to) +
                                      assignment_[edge->to]];
    own.trail = static_cast<int64_t>(trails_.size());
    trails_.push_back({v, a, -1, -1});
    // What is left of the threshold for a sum, when those still to come cost what they cost at least.
    double room = threshold_ - outside;
    for (int child : children_[b]) room -= least_of(child);
    Set pairs{own};
    for (int child : children_[b]) {
      room += least_of(child);
      pairs = sum(pairs, messages_[child][elimination_.buckets()[child].message.index(assignment_)], room);
    }
    const int64_t most_bytes = problem_.limit.count - (fewest_ - fewest_below_[b]);
    for (const Pair& pair : pairs) {
      if (pair.bytes <= most_bytes && cost(pair) + outside <= threshold_) set.push_back(pair);
    }
  }

  // Least value of the message that came from `child`, at the current assignment, under the multiplier.
  double least_of(int child) const {
    const Table& message = elimination_.buckets()[child].message;
    return (*message.values)[message.index(assignment_)];
  }
  double cost(const Pair& pair) const {
    return pair.seconds + problem_.multiplier * static_cast<double>(pair.bytes);
  }

  // All sums of a pair of each set that cost at most `room`, less those that others beat.
  Set sum(const Set& left, const Set& right, double room) {
    Set sums;
    sums.reserve(left.size() * right.size());
    result_.points += static_cast<int64_t>(left.size() * right.size());
    if (gave_up()) return {};
    for (size_t l = 0; l < left.size(); ++l) {
      for (size_t r = 0; r < right.size(); ++r) {
        const Pair pair{left[l].seconds + right[r].seconds, left[l].bytes + right[r].bytes,
                        static_cast<int64_t>(l * right.size() + r)};
        if (pair.bytes <= problem_.limit.count && cost(pair) <= room) sums.push_back(pair);
      }
    }
    keep_best(sums);
    thin(sums);
    for (Pair& pair : sums) {
      const size_t l = static_cast<size_t>(pair.trail) / right.size(),
                   r = static_cast<size_t>(pair.trail) % right.size();
      pair.trail = static_cast<int64_t>(trails_.size());
      trails_.push_back({-1, -1, left[l].trail, right[r].trail});
    }
    return sums;
  }

  // Keeps at most `set_limit` pairs: of as many ranges of bytes, each the best under the multiplier.
  void thin(Set& set) {
    const size_t most = problem_.set_limit, count = set.size();
    if (most == 0 || count <= most) return;
    for (size_t i = 0; i < most; ++i) {
      const auto first = set.begin() + static_cast<int64_t>(i * count / most);
      const auto last = set.begin() + static_cast<int64_t>((i + 1) * count / most);
      set[i] = *std::ranges::min_element(first, last, {}, [&](const Pair& pair) { return cost(pair); });
    }
    set.resize(most);
    result_.complete = false;
  }

  void follow(int64_t trail) {
    std::vector<int64_t> open{trail};
    while (!open.empty()) {
      const int64_t next = open.back();
      open.pop_back();
      if (next < 0) continue;
      const Trail& step = trails_[next];
      if (step.vertex >= 0) assignment_[step.vertex] = step.candidate;
      open.push_back(step.left);
      open.push_back(step.right);
    }
  }

  const ParetoProblem& problem_;
  const Elimination& elimination_;
  Marginals marginals_;
  double threshold_;  // least seconds + multiplier * bytes beyond which nothing improves
  std::vector<std::vector<Set>> messages_;  // per bucket and entry of its scope
  std::vector<std::vector<int>> children_;
  std::vector<std::vector<const CostGraph::Edge*>> edges_;  // per bucket: those that become known there
  std::vector<int> assignment_;
  std::vector<int64_t> fewest_below_;  // bytes of the bucket's vertex and all below it
  int64_t fewest_ = 0;
  std::vector<Trail> trails_;
  ParetoResult result_;
};

}  // namespace

ParetoResult pareto_search(const ParetoProblem& problem) {
  const EliminationOrder order = checked_order(problem.bound, {problem.table_limit.count / 3});
  const Elimination elimination(problem.bound, order.vertices, true);
  ensure(std::isfinite(elimination.optimum()), "what is known is possible");
  return ParetoSearch(problem, elimination).run();
}

}  // namespace cortado::plan
