#pragma once

#include <algorithm>
#include <cstdint>
#include <omp.h>

#include "cortado/base/compute_threads.h"
#include "cortado/base/thread_team.h"
#include "cortado/kernels/lowering/lattice.h"

namespace cortado::lowering {

// Whether threads that make sums of so many bytes over rows do so each for rows of its own, and add up their
// sums in the end: where the sums are small and the rows are many.
inline bool sums_apart(int64_t threads, int64_t bytes, int64_t rows) {
  constexpr int64_t max_bytes = 8 << 20, min_rows = 4096;              // of all threads; of each
  constexpr int64_t small_bytes = 512 << 10, min_rows_of_small = 256;  // of sums that caches hold
  return threads * bytes <= max_bytes &&
         rows >= threads * (bytes <= small_bytes ? min_rows_of_small : min_rows);
}

// Blocks of rows that threads take, and the parts that panels of columns are split in where blocks are fewer
// than threads.
struct RowBlocks {
  int64_t rows = 1, count = 0, column_parts = 1;  // rows of a block: whole tiles
};
// At most `most` rows in each.
inline RowBlocks blocks_of_rows(int64_t rows, int64_t tile_rows, int64_t most, int64_t panels) {
  RowBlocks blocks;
  if (rows == 0) return blocks;
  const int64_t threads = compute_threads(), tiles = divide_up(rows, tile_rows);
  int64_t count = divide_up(rows, most);
  if (count >= threads) {
    count = std::min(tiles, round_up(count, threads));
  } else {
    blocks.column_parts = std::min(divide_up(threads, count), panels);
  }
  blocks.rows = divide_up(tiles, count) * tile_rows;
  blocks.count = divide_up(rows, blocks.rows);
  return blocks;
}

// Calls work(i) for each partition at the same time, each on its share of the compute threads: inside,
// compute_threads() is that share and parallel_for runs on it (Caffe con Troll, section 2.2).
template <typename Work>
void for_each_partition(int partitions, Work&& work) {
  const int threads = std::max(1, compute_threads() / partitions);
  if (partitions == 1 || compute_threads() == 1) {
    for (int i = 0; i < partitions; ++i) work(i);
    return;
  }
  if (ThreadTeam* team = threads == 1 ? ThreadTeam::current() : nullptr) return team->run(partitions, work);
  // Without this, OpenMP gives each partition one thread.
  if (threads > 1 && omp_get_max_active_levels() < 2) omp_set_max_active_levels(2);
#pragma omp parallel for schedule(static, 1) num_threads(partitions)
  for (int i = 0; i < partitions; ++i) {
    set_compute_threads(threads);  // of this task of OpenMP alone
    work(i);
  }
}

}  // namespace cortado::lowering
