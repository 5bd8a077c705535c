#pragma once

#include <chrono>

#include "cortado/base/units.h"

namespace cortado {

// Lets time pass as a processor would that takes so long for one step after the other.
class ModelledClock {
 public:
  // Sleeps until a step of this length ends. The step begins where the one before should have ended or, if
  // that is more than 0.5 ms ago, now: sleeping ends late, and steps in a row make up for it.
  void take(Seconds seconds);

 private:
  std::chrono::steady_clock::time_point end_{};  // of the last step
};

}  // namespace cortado
