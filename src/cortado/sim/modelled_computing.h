#pragma once

#include <chrono>
#include <vector>

#include "cortado/machine/device_graph.h"
#include "cortado/program/program.h"

namespace cortado {

// Replaces the steps of a rank's program (ExecutorOptions::in_place_of_computing): waits as long as each step
// would compute by a machine's figures.
class ModelledComputing {
 public:
  ModelledComputing(const Program& program, const DeviceGraph& machine);
  explicit ModelledComputing(IndexedVector<StepIndex, Seconds> seconds) : seconds_(std::move(seconds)) {}

  void operator()(StepIndex step);

 private:
  IndexedVector<StepIndex, Seconds> seconds_;
  std::chrono::steady_clock::time_point end_{};  // of the last step
};

}  // namespace cortado
