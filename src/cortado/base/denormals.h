#pragma once

#include <vector>

namespace cortado {

// Denormal numbers are those nearer to 0 than 1.2e-38 (f32). Some processors take a hundred times as long for
// them as for others, and a net that has learned its samples is full of them.

// Lets them count as 0 on the calling thread, from now on: for threads that nobody else computes on.
void flush_denormals();

// Lets them count as 0 on the calling thread and its compute threads while it lives.
class FlushedDenormals {
 public:
  FlushedDenormals();
  ~FlushedDenormals();
  FlushedDenormals(const FlushedDenormals&) = delete;
  FlushedDenormals& operator=(const FlushedDenormals&) = delete;

 private:
  std::vector<unsigned> before_;  // of each compute thread; none: the caller's scope has done it
};

}  // namespace cortado
