#include "cortado/plan/table.h"

#include <algorithm>

#include "cortado/base/error.h"
#include "cortado/plan/threads.h"

namespace cortado::plan {
namespace {

// Rows of `tile` values at a time, so that both sides of a transposition stay in the cache.
constexpr int64_t tile = 16;

// to[r][c] = from[r * row_stride + c * column_stride]
void gather(const double* from, int64_t row_stride, int64_t column_stride, double* to, int64_t rows,
            int64_t columns) {
  for (int64_t r0 = 0; r0 < rows; r0 += tile)
    for (int64_t c0 = 0; c0 < columns; c0 += tile)
      for (int64_t r = r0; r < std::min(rows, r0 + tile); ++r)
        for (int64_t c = c0; c < std::min(columns, c0 + tile); ++c)
          to[r * columns + c] = from[r * row_stride + c * column_stride];
}

}  // namespace

bool Table::has(int vertex) const { return std::ranges::find(scope, vertex) != scope.end(); }

int Table::size_of(int vertex) const {
  const auto place = std::ranges::find(scope, vertex);
  ensure(place != scope.end(), "a vertex of the scope");
  return sizes[place - scope.begin()];
}

int64_t Table::stride_of(int vertex) const {
  int64_t stride = 1;
  for (size_t i = scope.size(); i-- > 0; stride *= sizes[i]) {
    if (scope[i] == vertex) return stride;
  }
  return 0;
}

int64_t Table::index(std::span<const int> assignment) const {
  int64_t index = 0;
  for (size_t i = 0; i < scope.size(); ++i) index = index * sizes[i] + assignment[scope[i]];
  return index;
}

Table permuted(const Table& table, const std::vector<int>& scope) {
  if (scope == table.scope) return table;
  Table result{scope, {}, {}};
  std::vector<int64_t> strides;
  for (int vertex : scope) {
    result.sizes.push_back(table.size_of(vertex));
    strides.push_back(table.stride_of(vertex));
  }
  const size_t rank = scope.size();  // at least two, for the orders differ
  const int64_t rows = result.sizes[rank - 2], columns = result.sizes[rank - 1];
  auto values = std::make_shared<std::vector<double>>(table.values->size());
  parallel_for_work(table.size() / (rows * columns), static_cast<double>(table.size()), [&](int64_t outer) {
    int64_t offset = 0, rest = outer;
    for (size_t i = rank - 2; i-- > 0; rest /= result.sizes[i]) offset += rest % result.sizes[i] * strides[i];
    gather(table.values->data() + offset, strides[rank - 2], strides[rank - 1],
           values->data() + outer * rows * columns, rows, columns);
  });
  result.values = std::move(values);
  return result;
}

Table summed(std::span<const Table> tables, const std::vector<int>& scope, const std::vector<int>& sizes) {
  Table result{scope, sizes, {}};
  int64_t size = 1;
  for (int count : sizes) size *= count;
  auto values = std::make_shared<std::vector<double>>(static_cast<size_t>(size));
  const int64_t columns = sizes.empty() ? 1 : sizes.back();
  for (const Table& table : tables) {
    std::vector<int64_t> strides;
    for (int vertex : scope) strides.push_back(table.stride_of(vertex));
    parallel_for_work(size / columns, static_cast<double>(size), [&](int64_t row) {
      int64_t offset = 0, rest = row;
      for (size_t i = scope.size() - 1; i-- > 0; rest /= sizes[i]) offset += rest % sizes[i] * strides[i];
      double* to = values->data() + row * columns;
      for (int64_t c = 0; c < columns; ++c) to[c] += (*table.values)[offset + c * strides.back()];
    });
  }
  result.values = std::move(values);
  return result;
}

void add(Table& table, const Table& other) {
  const Table turned = permuted(other, table.scope);
  if (table.values.use_count() > 1) table.values = std::make_shared<std::vector<double>>(*table.values);
  // Nobody else sees them, and they were made here: written where they lie.
  auto& values = const_cast<std::vector<double>&>(*table.values);
  for (size_t i = 0; i < values.size(); ++i) values[i] += (*turned.values)[i];
}

}  // namespace cortado::plan
