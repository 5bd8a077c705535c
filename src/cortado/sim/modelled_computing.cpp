#include "cortado/sim/modelled_computing.h"

#include <thread>

#include "cortado/cost/analytic.h"
#include "cortado/sim/step_seconds.h"

namespace cortado {

ModelledComputing::ModelledComputing(const Program& program, const DeviceGraph& machine) {
  AnalyticCosts costs(machine);
  const std::vector<int> nodes = machine.node_of_devices();
  seconds_ = StepSeconds(program, costs, nodes).of_all();
}

// Sleeping ends late; a step that follows at once begins when the one before should have ended.
void ModelledComputing::operator()(StepIndex step) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds late{500};
  const auto now = Clock::now();
  if (now - end_ > late) end_ = now;
  const Seconds seconds = seconds_[step];
  end_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds.count));
  std::this_thread::sleep_until(end_);
}

}  // namespace cortado
