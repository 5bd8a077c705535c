#include "cortado/train/running_pace.h"

#include <algorithm>

namespace cortado {

void RunningPace::add(const IterationReport& r) {
  const double seconds = std::max(1e-9, r.duration.count);
  const double keep = std::min(0.95, 1 - 1 / static_cast<double>(r.iteration - first_iteration_ + 1));
  seconds_ = keep * seconds_ + (1 - keep) * seconds;
  rate_ = static_cast<double>(r.images) / seconds_;
  wait_share_ = keep * wait_share_ + (1 - keep) * r.data_wait.count / seconds;
  exposed_share_ = keep * exposed_share_ + (1 - keep) * r.exposed_communication.count / seconds;
}

}  // namespace cortado
