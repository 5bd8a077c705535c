#pragma once

#include <chrono>
#include <vector>

#include "cortado/machine/device_graph.h"
#include "cortado/program/program.h"

namespace cortado {

// Waits as long as steps of a rank's program take by a machine's figures, in place of computing them
// (ExecutorOptions::in_place_of_computing).
class ModelledComputing {
 public:
  ModelledComputing(const Program& program, const DeviceGraph& machine);
  explicit ModelledComputing(std::vector<Seconds> seconds) : seconds_(std::move(seconds)) {}  // per step

  void operator()(int step);

 private:
  std::vector<Seconds> seconds_;
  std::chrono::steady_clock::time_point end_{};  // of the last step
};

}  // namespace cortado
