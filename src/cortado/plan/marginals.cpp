#include "cortado/plan/marginals.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cortado/base/error.h"
#include "cortado/plan/prepared.h"
#include "cortado/plan/search.h"

namespace cortado::plan {
namespace {

bool among(const std::vector<int>& vertices, int vertex) {
  return std::ranges::find(vertices, vertex) != vertices.end();
}

// Returns, of the vertices that must go, the one whose tables together have the fewest entries.
int next_to_go(const std::vector<Table>& tables, const std::vector<int>& scope) {
  int best = -1;
  double least = 0;
  for (const Table& own : tables) {
    for (int vertex : own.scope) {
      if (among(scope, vertex)) continue;
      double entries = 1;
      std::vector<int> seen;
      for (const Table& table : tables) {
        for (size_t i = 0; table.has(vertex) && i < table.scope.size(); ++i) {
          if (among(seen, table.scope[i])) continue;
          seen.push_back(table.scope[i]);
          entries *= table.sizes[i];
        }
      }
      if (best >= 0 && entries >= least) continue;
      best = vertex;
      least = entries;
    }
  }
  return best;
}

// min over all vertices but those of `scope` of the sum of `tables`.
Table minimized_to(std::vector<Table> tables, const std::vector<int>& scope, const std::vector<int>& sizes) {
  for (int vertex = next_to_go(tables, scope); vertex >= 0; vertex = next_to_go(tables, scope)) {
    const auto gone = std::ranges::stable_partition(tables, [&](const Table& t) { return !t.has(vertex); });
    Table message = minimized(gone, vertex);
    tables.erase(gone.begin(), gone.end());
    tables.push_back(std::move(message));
  }
  return summed(tables, scope, sizes);
}

// Returns the least total cost less the message; infinite if the message is.
Table without(const Table& everything, const Table& message) {
  Table result = everything;
  auto values = std::make_shared<std::vector<double>>(*everything.values);
  for (size_t i = 0; i < values->size(); ++i)
    if (!std::isinf((*message.values)[i])) (*values)[i] -= (*message.values)[i];
  result.values = std::move(values);
  return result;
}

class MarginalWalk {
 public:
  explicit MarginalWalk(const Elimination& elimination)
      : elimination_(elimination), buckets_(elimination.buckets()) {
    marginals_.vertices.resize(buckets_.size());
    marginals_.outside.resize(buckets_.size());
    children_.resize(buckets_.size());
    for (size_t b = 0; b < buckets_.size(); ++b)
      if (buckets_[b].parent >= 0) children_[buckets_[b].parent].push_back(static_cast<int>(b));
  }

  Marginals run() {
    for (size_t b = buckets_.size(); b-- > 0;) visit(static_cast<int>(b));
    return std::move(marginals_);
  }

 private:
  void visit(int b) {
    const Elimination::Bucket& bucket = buckets_[b];
    std::vector<Table> tables = bucket.tables;
    if (bucket.parent >= 0)
      tables.push_back(marginals_.outside[b]);
    else
      tables.push_back(constant(bucket));
    std::vector<Table> reached;  // least cost of everything over the scopes of the children
    for (int child : children_[b]) {
      const Table& message = buckets_[child].message;
      const auto known = std::ranges::find_if(reached, [&](const Table& table) {
        return std::ranges::is_permutation(table.scope, message.scope);
      });
      const Table everything = known != reached.end() ? permuted(*known, message.scope)
                                                      : minimized_to(tables, message.scope, message.sizes);
      if (known == reached.end()) reached.push_back(everything);
      marginals_.outside[child] = without(everything, message);
    }
    // Any child's scope has this vertex, and is smaller than the bucket.
    const auto smallest = std::ranges::min_element(reached, {}, &Table::size);
    const std::vector<int> size{bucket.tables[0].size_of(bucket.vertex)};
    marginals_.vertices[bucket.vertex] =
        *minimized_to(smallest != reached.end() ? std::vector<Table>{*smallest} : tables, {bucket.vertex},
                      size)
             .values;
  }

  // Returns, for a bucket whose message is a number, the cost of all other parts of the graph, as a table
  // over its vertex.
  Table constant(const Elimination::Bucket& bucket) const {
    const int size = bucket.tables[0].size_of(bucket.vertex);
    const double rest = elimination_.optimum() - bucket.message.values->at(0);
    return {{bucket.vertex}, {size}, std::make_shared<std::vector<double>>(static_cast<size_t>(size), rest)};
  }

  const Elimination& elimination_;
  const std::vector<Elimination::Bucket>& buckets_;
  std::vector<std::vector<int>> children_;
  Marginals marginals_;
};

}  // namespace

Marginals marginals_of(const Elimination& elimination) {
  ensure(std::isfinite(elimination.optimum()), "an assignment is possible");
  return MarginalWalk(elimination).run();
}

std::vector<std::vector<double>> min_marginals(const CostGraph& graph, const SearchOptions& options) {
  const Prepared start = prepare(graph, Keep::optimum, false);
  // Each message has a table of its own, and one of what is outside of it.
  const EliminationOrder order = checked_order(start.exact, {options.table_limit.count / 3});
  const Elimination elimination(start.exact, order.vertices, true);
  if (std::isinf(elimination.optimum())) refuse_impossible(graph);
  return marginals_of(elimination).vertices;
}

}  // namespace cortado::plan
