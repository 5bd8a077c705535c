#include "cortado/exec/lane_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>

namespace cortado {
namespace {

long times_slept() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Each waking takes a core from a compute thread.
TEST(LaneThread, SleepsThroughStepsThatItWaitsNotFor) {
  constexpr int compute_steps = 100;
  const StepIndex last(compute_steps - 1), message(compute_steps);
  LaneThread::Steps steps;
  steps.order = {message};
  steps.waits.resize(compute_steps + 1);
  steps.waits_before.resize(compute_steps + 1);
  steps.carried.resize(compute_steps + 1);
  steps.needed.resize(compute_steps + 1);
  steps.waits[message] = {last};
  long slept = 0;
  steps.start = [&](StepIndex) { slept = times_slept(); };
  steps.finished = [](StepIndex, bool) { return true; };
  LaneThread lane(std::move(steps));
  lane.start();
  for (int step = 0; step < compute_steps; ++step) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    lane.done(StepIndex(step));
  }
  lane.finish();
  EXPECT_GT(slept, 0);
  EXPECT_LT(slept, compute_steps / 4);
}

}  // namespace
}  // namespace cortado
