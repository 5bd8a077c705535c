#include "cortado/plan/elimination.h"

#include <algorithm>

#include "cortado/base/error.h"

namespace cortado::plan {
namespace {

bool same_vertices(const std::vector<int>& a, const std::vector<int>& b) {
  return a.size() == b.size() && std::ranges::is_permutation(a, b);
}

}  // namespace

Elimination::Elimination(const CostGraph& graph, const std::vector<int>& order, bool keep_messages)
    : of_vertex_(static_cast<size_t>(graph.size())), bucket_of_(static_cast<size_t>(graph.size())) {
  ensure(static_cast<int>(order.size()) == graph.size(), "an order has every vertex");
  for (size_t i = 0; i < order.size(); ++i) bucket_of_[order[i]] = static_cast<int>(i);
  for (int v = 0; v < graph.size(); ++v)
    hold({{v}, {graph.candidates(v)}, std::make_shared<std::vector<double>>(graph.vertices()[v].seconds)});
  for (const CostGraph::Edge& edge : graph.edges())
    hold({{edge.from, edge.to}, {graph.candidates(edge.from), graph.candidates(edge.to)}, edge.seconds});
  for (int vertex : order) eliminate(vertex, keep_messages);
}

// Adds a table to the one over the same vertices, if there is one.
void Elimination::hold(Table table) {
  for (int other : of_vertex_[table.scope[0]]) {
    if (!same_vertices(tables_[other].scope, table.scope)) continue;
    if (table.scope.size() > 1) ++counts_.edges;
    return add(tables_[other], table);
  }
  for (int vertex : table.scope) of_vertex_[vertex].push_back(static_cast<int>(tables_.size()));
  tables_.push_back(std::move(table));
}

void Elimination::eliminate(int vertex, bool keep_message) {
  Bucket bucket{vertex, {}, {}, -1};
  for (int index : std::vector<int>(of_vertex_[vertex])) {
    for (int other : tables_[index].scope) std::erase(of_vertex_[other], index);
    bucket.tables.push_back(std::move(tables_[index]));
    tables_[index] = {};
  }
  Table message = minimized(bucket.tables, vertex);
  const size_t neighbours = message.scope.size();
  ++(neighbours <= 1 ? counts_.leaves : neighbours == 2 ? counts_.nodes : counts_.general);
  bucket.message = message;
  if (!keep_message) bucket.message.values.reset();
  if (neighbours == 0) {
    optimum_ += message.values->at(0);
  } else {
    auto bucket_of = [&](int other) { return bucket_of_[other]; };
    bucket.parent = bucket_of(std::ranges::min(message.scope, {}, bucket_of));
    hold(std::move(message));
  }
  buckets_.push_back(std::move(bucket));
}

std::vector<int> Elimination::assignment() const {
  std::vector<int> assignment(of_vertex_.size());
  for (size_t b = buckets_.size(); b-- > 0;) {
    const Bucket& bucket = buckets_[b];
    const int candidates = bucket.tables[0].size_of(bucket.vertex);
    double least = 0;
    int best = 0;
    for (int a = 0; a < candidates; ++a) {
      assignment[bucket.vertex] = a;
      double cost = 0;
      for (const Table& table : bucket.tables) cost += (*table.values)[table.index(assignment)];
      if (a > 0 && cost >= least) continue;
      least = cost;
      best = a;
    }
    assignment[bucket.vertex] = best;
  }
  return assignment;
}

}  // namespace cortado::plan
