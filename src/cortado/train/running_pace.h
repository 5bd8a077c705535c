#pragma once

#include "cortado/train/observer.h"

namespace cortado {

// How a training goes of late: running means over its iterations.
class RunningPace {
 public:
  explicit RunningPace(int64_t first_iteration) : first_iteration_(first_iteration) {}
  void add(const IterationReport& report);

  double images_per_second() const { return rate_; }
  double seconds_per_iteration() const { return seconds_; }
  // Shares of the time: of waiting for batches, and for other ranks.
  double wait_share() const { return wait_share_; }
  double exposed_share() const { return exposed_share_; }

 private:
  int64_t first_iteration_;
  double rate_ = 0, seconds_ = 0, wait_share_ = 0, exposed_share_ = 0;
};

}  // namespace cortado
