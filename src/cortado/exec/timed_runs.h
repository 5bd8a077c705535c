#pragma once

#include <vector>

#include "cortado/exec/pass_times.h"

namespace cortado {

// The runs of a task that is timed. What disturbs a machine for a moment may lengthen one of few runs a
// hundredfold, so more are wanted as long as their median is far from the least.
class TimedRuns {
 public:
  explicit TimedRuns(int most) : most_(most) {}
  void add(const PassTimes& run);
  bool are_enough() const;
  PassTimes median() const;  // of each pass

 private:
  int most_;
  std::vector<PassTimes> runs_;
};

}  // namespace cortado
