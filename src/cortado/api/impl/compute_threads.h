#pragma once

#include "cortado/base/parallel_for.h"

namespace cortado::api {

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

}  // namespace cortado::api
