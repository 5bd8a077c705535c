#include "cortado/exec/modelled_clock.h"

#include <thread>

namespace cortado {

void ModelledClock::take(Seconds seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds late{500};
  const auto now = Clock::now();
  if (now - end_ > late) end_ = now;
  end_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds.count));
  std::this_thread::sleep_until(end_);
}

}  // namespace cortado
