#pragma once

#include <algorithm>

#include "cortado/base/units.h"
#include "cortado/kernels/gpu/grid.h"
#include "cortado/kernels/lowering/lattice.h"

// Sums of rows, in double, in a tree that depends on nothing but the extents: rows are added up within
// blocks, then blocks by groups of fold_width until one is left.
namespace cortado::gpu {

inline constexpr int64_t fewest_block_rows = 16;
inline constexpr int64_t most_block_sums = int64_t{1}
                                           << 19;  // as many threads as a large GPU can hold, twice
inline constexpr int64_t fold_width = 32;

inline int64_t sum_blocks(int64_t rows, int64_t columns) {
  const int64_t most = std::max<int64_t>(1, most_block_sums / std::max<int64_t>(1, columns));
  return std::clamp<int64_t>(rows / fewest_block_rows, 1, most);
}

// Sums that are added up at once.
template <int count>
struct SumsOf {
  double of[count];
};

// Scratch of sum_rows(), for `sums` of each column at once.
inline Bytes sum_scratch(int64_t rows, int64_t columns, int sums = 1) {
  int64_t all = 0;
  for (int64_t blocks = sum_blocks(rows, columns);; blocks = lowering::divide_up(blocks, fold_width)) {
    all += blocks;
    if (blocks <= fold_width) break;
  }
  return {all * columns * sums * int64_t{sizeof(double)}};
}

// Of sum_rows() of any number of rows.
inline Bytes most_sum_scratch(int64_t columns) {
  return sum_scratch(fewest_block_rows * most_block_sums, columns);
}

template <int count, typename Value>
struct BlockSum {
  Value value;
  int64_t rows, columns, blocks;
  double* sums;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t block = i / columns, column = i % columns;
    SumsOf<count> sum{};
    for (int64_t row = rows * block / blocks; row < rows * (block + 1) / blocks; ++row) {
      const SumsOf<count> more = value(row, column);
      for (int k = 0; k < count; ++k) sum.of[k] += more.of[k];
    }
    for (int k = 0; k < count; ++k) sums[(block * count + k) * columns + column] = sum.of[k];
  }
};

// Element i is a column of a group of blocks.
struct FoldSum {
  const double* sums;
  int64_t columns, blocks;
  double* totals;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t first = i / columns * fold_width, column = i % columns;
    double total = 0;
    for (int64_t block = first; block < blocks && block < first + fold_width; ++block)
      total += sums[block * columns + column];
    totals[i] = total;
  }
};

// totals[k * columns + column] = the sum of value(row, column).of[k] over all rows. Neighbouring elements
// read neighbouring columns.
template <int count, typename Value>
void sum_rows_of(void* stream, int64_t rows, int64_t columns, std::byte* scratch, double* totals,
                 const Value& value) {
  auto* sums = reinterpret_cast<double*>(scratch);
  int64_t blocks = sum_blocks(rows, columns);
  const int64_t width = count * columns;
  for_each(stream, blocks * columns, BlockSum<count, Value>{value, rows, columns, blocks, sums});
  while (blocks > fold_width) {
    double* const folded = sums + blocks * width;
    const int64_t groups = lowering::divide_up(blocks, fold_width);
    for_each(stream, groups * width, FoldSum{sums, width, blocks, folded});
    sums = folded, blocks = groups;
  }
  for_each(stream, width, FoldSum{sums, width, blocks, totals});
}

template <typename Value>
struct OneSum {
  Value value;
  CORTADO_EVERYWHERE SumsOf<1> operator()(int64_t row, int64_t column) const {
    return {{value(row, column)}};
  }
};

// totals[column] = the sum of value(row, column) over all rows.
template <typename Value>
void sum_rows(void* stream, int64_t rows, int64_t columns, std::byte* scratch, double* totals,
              const Value& value) {
  sum_rows_of<1>(stream, rows, columns, scratch, totals, OneSum<Value>{value});
}

}  // namespace cortado::gpu
