#pragma once

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

// Calls work(begin, end) for a balanced contiguous share of [0, count) per compute thread. Shares depend only
// on `count` and the number of threads. `work` must not throw.
template <typename Work>
void parallel_ranges(int64_t count, Work&& work) {
  const int threads = compute_threads();
  if (threads == 1 || count <= 1) {
    if (count > 0) work(int64_t{0}, count);
    return;
  }
  const auto share = [&](int t) {
    const int64_t begin = count * t / threads, end = count * (t + 1) / threads;
    if (begin < end) work(begin, end);
  };
  if (ThreadTeam* team = ThreadTeam::current()) return team->run(threads, share);
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int t = 0; t < threads; ++t) share(t);
}

// Calls work(i) for each i in [0, count), in those shares.
template <typename Work>
void parallel_for(int64_t count, Work&& work) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(i);
  });
}

}  // namespace cortado
