#pragma once

#include <algorithm>
#include <cstdint>

#include "cortado/base/compute_threads.h"
#include "cortado/base/thread_team.h"

namespace cortado {

// Calls work(thread) once on each of OpenMP's compute threads: for what a thread has of its own, such as
// registers.
template <typename Work>
void on_each_thread(Work&& work) {
  const int threads = compute_threads();
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int t = 0; t < threads; ++t) work(t);
}

// Calls work(begin, end) for balanced contiguous ranges that cover [0, count): one per compute thread, or
// some, on a ThreadTeam, whose threads take one after the other. What is computed must not depend on where
// ranges begin. `work` must not throw.
template <typename Work>
void parallel_ranges(int64_t count, Work&& work) {
  const int threads = compute_threads();
  if (threads == 1 || count <= 1) {
    if (count > 0) work(int64_t{0}, count);
    return;
  }
  const auto each_of = [&](int ranges) {
    return [&work, count, ranges](int r) {
      const int64_t begin = count * r / ranges, end = count * (r + 1) / ranges;
      if (begin < end) work(begin, end);
    };
  };
  constexpr int ranges_of_thread = 4;  // the more, the shorter a wait for the last
  if (ThreadTeam* team = ThreadTeam::current()) {
    const auto ranges = static_cast<int>(std::min<int64_t>(count, ranges_of_thread * threads));
    return team->run(ranges, each_of(ranges));
  }
  const auto share = each_of(threads);
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int t = 0; t < threads; ++t) share(t);
}

// Calls work(i) for each i in [0, count), in those ranges.
template <typename Work>
void parallel_for(int64_t count, Work&& work) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(i);
  });
}

}  // namespace cortado
