#pragma once

#include <memory>
#include <string>

#include "cortado/cost/measured.h"
#include "cortado/measure/algorithms.h"
#include "cortado/measure/job_times.h"
#include "cortado/sim/simulated_job.h"

namespace cortado {

// What things cost on the machine that this job runs on, by measured times; the same at every rank. All ranks
// make it, ask it the same things in the same order, and save it.
class JobCosts {
 public:
  // `kernels`: what tasks run on: "" (the list of all), fast_math, one implementation, or measured_kernels.
  // With the last a convolution costs what the fastest of its implementations takes.
  // `device`: this rank's.
  JobCosts(Communicator& job, std::string kernels, Notices notify = nullptr,
           device::DeviceRuntime& device = device::host());

  CostModel& costs() { return costs_; }
  JobTimes& times() { return times_; }
  const std::string& kernels() const { return kernels_; }
  // How Programs that cost this are compiled here; not with measured_kernels.
  KernelChoice kernel_choice() const;
  const DeviceGraph& machine() const { return times_.machine(); }
  SimulatedMachine simulated() { return {machine(), costs_, profile_}; }
  int measurements() const { return costs_.measurements(); }
  void save() { times_.save(); }

 private:
  TaskTime measure(const Task& task);

  std::string kernels_;
  JobTimes times_;
  KernelProfile profile_;
  Algorithms algorithms_;
  MeasuredCosts costs_;
  bool notified_ = false;
};

}  // namespace cortado
