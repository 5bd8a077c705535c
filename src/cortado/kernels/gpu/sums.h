#pragma once

#include "cortado/base/units.h"
#include "cortado/kernels/gpu/grid.h"

namespace cortado::gpu {

// Rows are summed in so many blocks, whatever the device: the order of a sum is the same everywhere.
inline constexpr int64_t most_sum_blocks = 256;
inline int64_t sum_blocks(int64_t rows) { return rows < most_sum_blocks ? rows : most_sum_blocks; }

// Scratch of sum_rows().
inline Bytes sum_scratch(int64_t rows, int64_t columns) {
  return {sum_blocks(rows) * columns * int64_t{sizeof(double)}};
}

template <typename Value>
struct BlockSum {
  Value value;
  int64_t rows, columns, blocks;
  double* sums;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t block = i / columns, column = i % columns;
    double sum = 0;
    for (int64_t row = rows * block / blocks; row < rows * (block + 1) / blocks; ++row)
      sum += value(row, column);
    sums[i] = sum;
  }
};

struct FoldSum {
  const double* sums;
  int64_t columns, blocks;
  double* totals;
  CORTADO_EVERYWHERE void operator()(int64_t column) const {
    double total = 0;
    for (int64_t block = 0; block < blocks; ++block) total += sums[block * columns + column];
    totals[column] = total;
  }
};

// totals[column] = the sum of value(row, column) over all rows, in double. Neighbouring elements read
// neighbouring columns.
template <typename Value>
void sum_rows(void* stream, int64_t rows, int64_t columns, std::byte* scratch, double* totals,
              const Value& value) {
  auto* const sums = reinterpret_cast<double*>(scratch);
  const int64_t blocks = sum_blocks(rows);
  for_each(stream, blocks * columns, BlockSum<Value>{value, rows, columns, blocks, sums});
  for_each(stream, columns, FoldSum{sums, columns, blocks, totals});
}

}  // namespace cortado::gpu
