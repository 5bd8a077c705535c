#pragma once

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

}  // namespace cortado::plan
