#pragma once

#include <cstdint>

namespace cortado {

// Number of compute threads (OpenMP) of the calling thread; scopes may change it.
int compute_threads();
void set_compute_threads(int threads);

// Lets the calling thread compute with another number of threads while it lives.
class ComputeThreads {
 public:
  explicit ComputeThreads(int threads) : before_(compute_threads()) { set_compute_threads(threads); }
  ~ComputeThreads() { set_compute_threads(before_); }
  ComputeThreads(const ComputeThreads&) = delete;
  ComputeThreads& operator=(const ComputeThreads&) = delete;

 private:
  const int before_;
};

// Throws UserError with the system's reason unless this process may run so many threads at once: OpenMP would
// end it without a word of ours.
void require_threads(int threads);

// Calls work(begin, end) on each compute thread for a balanced contiguous share of [0, count).
// Shares depend only on `count` and the number of threads. `work` must not throw.
template <typename Work>
void parallel_ranges(int64_t count, Work&& work) {
  int threads = compute_threads();
  if (threads == 1 || count <= 1) {
    if (count > 0) work(int64_t{0}, count);
    return;
  }
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int t = 0; t < threads; ++t) {
    int64_t begin = count * t / threads, end = count * (t + 1) / threads;
    if (begin < end) work(begin, end);
  }
}

// Calls work(i) for each i in [0, count), one contiguous share a thread.
template <typename Work>
void parallel_for(int64_t count, Work&& work) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(i);
  });
}

}  // namespace cortado
