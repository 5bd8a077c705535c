#pragma once

#include <atomic>

#include "cortado/base/parallel_for.h"

namespace cortado::plan {

// Below so many additions or copies of a number, about a fifth of a millisecond, waking threads costs more
// than they save.
inline constexpr double worth_threads = 2'000'000;

// parallel_for, on the calling thread alone where all the work together is `operations` and too little.
template <typename Work>
void parallel_for_work(int64_t count, double operations, Work&& work) {
  if (operations >= worth_threads) return parallel_for(count, work);
  for (int64_t i = 0; i < count; ++i) work(i);
}

// The same where items take unequally long: a thread that is done with one takes the next.
template <typename Work>
void parallel_for_each(int64_t count, double operations, Work&& work) {
  std::atomic<int64_t> next = 0;
  parallel_for_work(compute_threads(), operations, [&](int64_t) {
    for (int64_t i = next++; i < count; i = next++) work(i);
  });
}

}  // namespace cortado::plan
