#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cortado/plan/cost_graph.h"

namespace cortado::plan {

// Costs over the candidates of several vertices, its scope; row-major, the last vertex running fastest.
struct Table {
  std::vector<int> scope;
  std::vector<int> sizes;  // candidates of each vertex of the scope
  Costs values;

  int64_t size() const { return static_cast<int64_t>(values->size()); }
  bool has(int vertex) const;
  int size_of(int vertex) const;
  int64_t stride_of(int vertex) const;  // 0: not in scope
  // Index of the entry that `assignment` chooses. It is of all vertices of the graph; those out of scope do
  // not matter.
  int64_t index(std::span<const int> assignment) const;
};

// The same costs with the scope in another order.
Table permuted(const Table& table, const std::vector<int>& scope);

// The sum of tables over the vertices of `scope`; each table's own scope is a part of it.
Table summed(std::span<const Table> tables, const std::vector<int>& scope, const std::vector<int>& sizes);

// Adds `other`, which has the same vertices in its scope, in any order.
void add(Table& table, const Table& other);

}  // namespace cortado::plan
