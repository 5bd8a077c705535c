#pragma once

#include <vector>

#include "cortado/base/parallel_for.h"

namespace cortado::testing {

// Whether a result that is denormal counts as 0 on the calling thread.
inline bool flushes_denormals() {
  const volatile float small = 1.5e-38f;
  return small * 0.5f == 0;
}

// On how many of the calling thread's compute threads.
inline int threads_that_flush() {
  std::vector<int> flush(static_cast<size_t>(compute_threads()));
  parallel_for(std::ssize(flush),
               [&](int64_t thread) { flush[static_cast<size_t>(thread)] = flushes_denormals(); });
  int count = 0;
  for (const int one : flush) count += one;
  return count;
}

}  // namespace cortado::testing
