#include "cortado/exec/step_clock.h"

namespace cortado {

StepClock::StepClock(const Program& program, device::DeviceRuntime& device)
    : queue_(device.queue()), started_(device.make_event(true)) {
  ended_.resize(program.steps.size());
  for (StepIndex s : indices(program.steps))
    if (program.steps[s].lane == Lane::compute) ended_[s] = device.make_event(true);
}

void StepClock::start() {
  steps_.clear();
  queue_.record(*started_);
}

void StepClock::after(StepIndex index) {
  queue_.record(*ended_[index]);
  steps_.push_back(index);
}

void StepClock::write_to(Timeline& timeline) const {
  Seconds before;
  for (const StepIndex step : steps_) {
    const Seconds end = ended_[step]->since(*started_);
    TimelineEntry& entry = timeline[static_cast<size_t>(step.value())];
    entry.begin = before;
    entry.end = before = end;
  }
}

}  // namespace cortado
