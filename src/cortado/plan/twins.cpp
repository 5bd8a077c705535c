#include "cortado/plan/twins.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "cortado/plan/threads.h"

namespace cortado::plan {
namespace {

constexpr uint64_t factor = 0x9e3779b97f4a7c15ULL;

uint64_t mixed(uint64_t hash, double value) {
  hash = (hash ^ std::bit_cast<uint64_t>(value)) * factor;
  return hash ^ (hash >> 32);
}

// A table's rows and columns by their hashes.
struct Hashes {
  std::vector<uint64_t> rows, columns;
};

Hashes hashes_of(const std::vector<double>& table, size_t rows) {
  const size_t columns = table.size() / rows;
  Hashes hashes{std::vector<uint64_t>(rows), std::vector<uint64_t>(columns)};
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      const double value = table[r * columns + c];
      hashes.rows[r] = mixed(hashes.rows[r], value);
      hashes.columns[c] = mixed(hashes.columns[c], value);
    }
  }
  return hashes;
}

class TwinFinder {
 public:
  explicit TwinFinder(const CostGraph& graph) : graph_(graph), edges_(static_cast<size_t>(graph.size())) {
    for (const CostGraph::Edge& edge : graph.edges()) {
      edges_[static_cast<size_t>(edge.from)].push_back(&edge);
      edges_[static_cast<size_t>(edge.to)].push_back(&edge);
    }
  }

  Twins run() {
    hash_tables();
    Twins twins;
    for (int v = 0; v < graph_.size(); ++v) {
      find(v, twins.kept.emplace_back(), twins.kept_by.emplace_back());
      twins.any |= std::ssize(twins.kept.back()) < graph_.candidates(v);
    }
    return twins;
  }

 private:
  // Edges share their tables.
  void hash_tables() {
    std::vector<const CostGraph::Edge*> distinct;
    double work = 0;
    for (const CostGraph::Edge& edge : graph_.edges()) {
      if (!hashes_.try_emplace(edge.seconds.get()).second) continue;
      distinct.push_back(&edge);
      work += static_cast<double>(edge.seconds->size());
    }
    parallel_for_work(std::ssize(distinct), work, [&](int64_t i) {
      const CostGraph::Edge& edge = *distinct[static_cast<size_t>(i)];
      hashes_.at(edge.seconds.get()) =
          hashes_of(*edge.seconds, static_cast<size_t>(graph_.candidates(edge.from)));
    });
  }

  bool same(int vertex, size_t a, size_t b) const {
    return std::ranges::all_of(edges_[static_cast<size_t>(vertex)], [&](const CostGraph::Edge* edge) {
      const std::vector<double>& table = *edge->seconds;
      const auto columns = static_cast<size_t>(graph_.candidates(edge->to));
      if (edge->from == vertex) {
        const auto row = [&](size_t r) { return table.begin() + static_cast<std::ptrdiff_t>(r * columns); };
        return std::equal(row(a), row(a + 1), row(b));
      }
      for (size_t at = 0; at < table.size(); at += columns)
        if (table[at + a] != table[at + b]) return false;
      return true;
    });
  }

  void find(int vertex, std::vector<int>& kept, std::vector<int>& kept_by) const {
    const std::vector<double>& seconds = graph_.vertices()[static_cast<size_t>(vertex)].seconds;
    std::vector<size_t> cheapest_first(seconds.size());
    std::iota(cheapest_first.begin(), cheapest_first.end(), size_t{0});
    std::ranges::stable_sort(cheapest_first, {}, [&](size_t c) { return seconds[c]; });
    std::map<uint64_t, std::vector<size_t>> known;  // those that are kept, by hash
    std::vector<size_t> stands_for(seconds.size());
    for (size_t c : cheapest_first) {
      uint64_t hash = 0;
      for (const CostGraph::Edge* edge : edges_[static_cast<size_t>(vertex)]) {
        const Hashes& hashes = hashes_.at(edge->seconds.get());
        hash = (hash ^ (edge->from == vertex ? hashes.rows : hashes.columns)[c]) * factor;
      }
      std::vector<size_t>& alike = known[hash];
      const auto twin = std::ranges::find_if(alike, [&](size_t other) { return same(vertex, c, other); });
      stands_for[c] = twin == alike.end() ? c : *twin;
      if (twin == alike.end()) alike.push_back(c);
    }
    std::vector<int> number(seconds.size());
    for (size_t c = 0; c < seconds.size(); ++c) {
      if (stands_for[c] != c) continue;
      number[c] = static_cast<int>(kept.size());
      kept.push_back(static_cast<int>(c));
    }
    for (size_t c : stands_for) kept_by.push_back(number[c]);
  }

  const CostGraph& graph_;
  std::vector<std::vector<const CostGraph::Edge*>> edges_;  // per vertex
  std::map<const std::vector<double>*, Hashes> hashes_;     // per table
};

}  // namespace

Twins twins_of(const CostGraph& graph) { return TwinFinder(graph).run(); }

}  // namespace cortado::plan
