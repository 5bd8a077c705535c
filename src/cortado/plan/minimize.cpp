#include "cortado/plan/minimize.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "cortado/base/error.h"
#include "cortado/plan/min_plus.h"
#include "cortado/plan/threads.h"

namespace cortado::plan {
namespace {

// Rows of the left factor that are made and multiplied at a time: they stay in the second-level cache.
constexpr int64_t row_block = 32;

// Any elimination is a batch of min-plus products. One of the remaining vertices becomes the columns. Tables
// that contain it are the right factor, others the left one. The vertices that the right factor has besides
// are the batch, all others the rows.
struct Product {
  int vertex = -1, column = -1;  // column -1: nothing remains
  int64_t depth = 0, columns = 1;
  std::vector<int> batch, rows;  // vertices
  std::vector<int> batch_sizes, row_sizes;
  std::vector<const Table*> left, right;
};

int64_t choices_of(const std::vector<int>& sizes) {
  int64_t product = 1;
  for (int size : sizes) product *= size;
  return product;
}

std::map<int, int> remaining(std::span<const Table> tables, int vertex) {
  std::map<int, int> sizes;  // by vertex
  for (const Table& table : tables)
    for (size_t i = 0; i < table.scope.size(); ++i)
      if (table.scope[i] != vertex) sizes[table.scope[i]] = table.sizes[i];
  return sizes;
}

// Entries of tables that would have to be put into another order for these columns.
int64_t entries_to_move(std::span<const Table> tables, int vertex, int column) {
  int64_t entries = 0;
  for (const Table& table : tables) {
    const size_t last = table.scope.size() - 1;
    const bool in_order = table.has(column) ? table.scope[last] == column && table.scope[last - 1] == vertex
                                            : table.scope[last] == vertex;
    if (!in_order) entries += table.size();
  }
  return entries;
}

// The vertex whose tables have the least beside it; then the one that moves the least; then the one of most
// candidates.
int column_of(std::span<const Table> tables, int vertex, const std::map<int, int>& sizes) {
  int best = -1;
  std::array<int64_t, 3> least{};
  for (const auto& [column, size] : sizes) {
    int64_t batch = 1;
    for (const auto& [other, other_size] : sizes) {
      auto has_both = [&, c = column, o = other](const Table& table) { return table.has(c) && table.has(o); };
      if (other != column && std::ranges::any_of(tables, has_both)) batch *= other_size;
    }
    const std::array<int64_t, 3> each{batch, entries_to_move(tables, vertex, column), -size};
    if (best >= 0 && each >= least) continue;
    best = column;
    least = each;
  }
  return best;
}

// Left tables end with the vertex, right ones with vertex and column.
void arrange(std::span<Table> tables, int vertex, int column) {
  for (Table& table : tables) {
    const bool right = table.has(column);
    std::vector<int> scope;
    for (int other : table.scope)
      if (other != vertex && other != column) scope.push_back(other);
    scope.push_back(vertex);
    if (right) scope.push_back(column);
    table = permuted(table, scope);
  }
}

Product product_of(std::span<Table> tables, int vertex) {
  Product product;
  product.vertex = vertex;
  product.depth = tables[0].size_of(vertex);
  const std::map<int, int> sizes = remaining(tables, vertex);
  product.column = column_of(tables, vertex, sizes);
  if (product.column >= 0) product.columns = sizes.at(product.column);
  arrange(tables, vertex, product.column);
  for (const Table& table : tables)
    (table.has(product.column) ? product.right : product.left).push_back(&table);
  for (const auto& [other, size] : sizes) {
    if (other == product.column) continue;
    const bool batch =
        std::ranges::any_of(product.right, [&, o = other](const Table* t) { return t->has(o); });
    (batch ? product.batch : product.rows).push_back(other);
    (batch ? product.batch_sizes : product.row_sizes).push_back(size);
  }
  return product;
}

// Offset of the part of `table` that the index-th choice of candidates of `vertices` chooses.
int64_t offset_of(const Table& table, const std::vector<int>& vertices, const std::vector<int>& sizes,
                  int64_t index) {
  int64_t offset = 0;
  for (size_t i = vertices.size(); i-- > 0; index /= sizes[i])
    offset += index % sizes[i] * table.stride_of(vertices[i]);
  return offset;
}

void pack(const Product& product, int64_t batch, int64_t panel, PackedMatrix& packed) {
  if (product.right.empty()) packed.clear_panel(panel);
  for (const Table* table : product.right) {
    const double* from = table->values->data() + offset_of(*table, product.batch, product.batch_sizes, batch);
    if (table == product.right.front())
      packed.set_panel(panel, from, product.columns);
    else
      packed.add_panel(panel, from, product.columns);
  }
}

// Whether the left factor lies in one table as it is: row after row, the same for all of the batch.
bool lies_ready(const Product& product) {
  return product.left.size() == 1 && product.left[0]->scope.size() == product.rows.size() + 1 &&
         std::ranges::equal(product.rows, std::span(product.left[0]->scope).first(product.rows.size()));
}

// Rows [begin, end) of the left factor.
void make_rows(const Product& product, int64_t batch, int64_t begin, int64_t end, double* rows) {
  if (product.left.empty()) std::fill_n(rows, (end - begin) * product.depth, 0.0);
  for (const Table* table : product.left) {
    const double* base = table->values->data() + offset_of(*table, product.batch, product.batch_sizes, batch);
    for (int64_t row = begin; row < end; ++row) {
      const double* from = base + offset_of(*table, product.rows, product.row_sizes, row);
      double* to = rows + (row - begin) * product.depth;
      if (table == product.left.front()) {
        std::copy_n(from, product.depth, to);
      } else {
        for (int64_t j = 0; j < product.depth; ++j) to[j] += from[j];
      }
    }
  }
}

// Of one thread: rows of the left factor.
class RowRoom {
 public:
  explicit RowRoom(const Product& product) {
    if (lies_ready(product))
      ready_ = product.left[0]->values->data();
    else
      made_ = std::make_unique_for_overwrite<double[]>(static_cast<size_t>(row_block * product.depth));
  }

  // Rows [begin, end), at most row_block.
  const double* rows(const Product& product, int64_t batch, int64_t begin, int64_t end) {
    if (ready_) return ready_ + begin * product.depth;
    make_rows(product, batch, begin, end, made_.get());
    return made_.get();
  }

 private:
  const double* ready_ = nullptr;
  std::unique_ptr<double[]> made_;
};

void multiply_rows(const Product& product, int64_t batch, int64_t begin, int64_t end,
                   const PackedMatrix& right, RowRoom& room, double* out) {
  for (int64_t first = begin; first < end; first += row_block) {
    const int64_t last = std::min(end, first + row_block);
    min_plus(room.rows(product, batch, first, last), last - first, right, out + first * product.columns);
  }
}

// What threads work in is made before they begin: they must not throw.
std::vector<RowRoom> rooms_for(const Product& product, int threads) {
  std::vector<RowRoom> rooms;
  for (int t = 0; t < threads; ++t) rooms.emplace_back(product);
  return rooms;
}

// One product: threads share its rows.
void multiply_one(const Product& product, int64_t rows, int threads, double* out) {
  PackedMatrix right(product.depth, product.columns);
  std::vector<RowRoom> rooms = rooms_for(product, threads);
  const double entries = threads == 1 ? 0 : static_cast<double>(product.depth * product.columns);
  parallel_for_work(right.panels(), entries, [&](int64_t panel) { pack(product, 0, panel, right); });
  const auto share = [&](int64_t t) {
    multiply_rows(product, 0, rows * t / threads, rows * (t + 1) / threads, right, rooms[t], out);
  };
  if (threads == 1) return share(0);
  parallel_for(threads, share);
}

// Many products: threads share them.
void multiply_batch(const Product& product, int64_t batches, int64_t rows, int threads, double* out) {
  std::vector<RowRoom> rooms = rooms_for(product, threads);
  std::vector<PackedMatrix> rights;
  for (int t = 0; t < threads; ++t) rights.emplace_back(product.depth, product.columns);
  const auto share = [&](int64_t t) {
    for (int64_t batch = batches * t / threads; batch < batches * (t + 1) / threads; ++batch) {
      for (int64_t panel = 0; panel < rights[t].panels(); ++panel) pack(product, batch, panel, rights[t]);
      multiply_rows(product, batch, 0, rows, rights[t], rooms[t], out + batch * rows * product.columns);
    }
  };
  if (threads == 1) return share(0);
  parallel_for(threads, share);
}

}  // namespace

Table minimized(std::span<Table> tables, int vertex) {
  ensure(!tables.empty() && std::ranges::all_of(tables, [&](const Table& t) { return t.has(vertex); }),
         "every table has the vertex that goes");
  const Product product = product_of(tables, vertex);
  const int64_t batches = choices_of(product.batch_sizes), rows = choices_of(product.row_sizes);
  Table result{product.batch, product.batch_sizes, {}};
  result.scope.insert(result.scope.end(), product.rows.begin(), product.rows.end());
  result.sizes.insert(result.sizes.end(), product.row_sizes.begin(), product.row_sizes.end());
  if (product.column >= 0) {
    result.scope.push_back(product.column);
    result.sizes.push_back(static_cast<int>(product.columns));
  }
  auto values = std::make_shared<std::vector<double>>(static_cast<size_t>(batches * rows * product.columns));
  const double additions = static_cast<double>(values->size()) * static_cast<double>(product.depth);
  const int threads = additions < worth_threads ? 1 : compute_threads();
  if (batches == 1)
    multiply_one(product, rows, threads, values->data());
  else
    multiply_batch(product, batches, rows, threads, values->data());
  result.values = std::move(values);
  return result;
}

}  // namespace cortado::plan
