#pragma once

#include <chrono>

#include "cortado/base/units.h"

namespace cortado {

// Lets time pass as a processor would that takes so long for one step after the other.
class Pace {
 public:
  // Returns when a step of this length ends that began when this was called, or, where the step before should
  // have ended less than 0.5 ms ago, then: sleeping ends late, and the steps after catch up.
  void take(Seconds seconds);

 private:
  std::chrono::steady_clock::time_point end_{};  // of the last step
};

}  // namespace cortado
