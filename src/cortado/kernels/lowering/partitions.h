#pragma once

#include <algorithm>
#include <cstdint>
#include <omp.h>

#include "cortado/base/parallel_for.h"

namespace cortado::lowering {

// Calls work(i) for each partition at the same time, each on its share of the compute threads: inside,
// compute_threads() is that share and parallel_for runs on it (Caffe con Troll, section 2.2).
template <typename Work>
void for_each_partition(int partitions, Work&& work) {
  if (partitions == 1) return work(0);
  const int threads = std::max(1, compute_threads() / partitions);
  // Without this, OpenMP gives each partition one thread.
  if (threads > 1 && omp_get_max_active_levels() < 2) omp_set_max_active_levels(2);
#pragma omp parallel for schedule(static, 1) num_threads(partitions)
  for (int i = 0; i < partitions; ++i) {
    set_compute_threads(threads);  // of this task of OpenMP alone
    work(i);
  }
}

}  // namespace cortado::lowering
