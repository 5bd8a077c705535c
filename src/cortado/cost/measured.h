#pragma once

#include <functional>
#include <map>
#include <string>

#include "cortado/cost/analytic.h"
#include "cortado/cost/task_times.h"

namespace cortado {

// Runs a task and tells how long it took: on every device of the job at the same time where Task::cut says
// that several share the layer, else on one alone. (Devices of a host load its memory together.)
using TaskTimer = std::function<TaskTime(const Task&)>;

// Costs of which those of tasks are measured, each problem once; the others are the machine's (analytic.h).
// The timer tells of the fastest devices; on others a task takes longer as their weights are less
// (DeviceGraph::weights).
//
// A task that was not measured costs a bound from below: products (convolutions, inner products) cannot do
// more operations in a second than `peak`, with Winograd's algorithm 2.25 times as many in the direct count,
// and 4 times where `kernels` are given; of others nothing is known. A fifth is taken off, since a peak is
// measured, too. Where a measurement still passes its bound (taps in the padding that need no computing), all
// later bounds are lowered with it.
class MeasuredCosts : public AnalyticCosts {
 public:
  // `times` must outlive it and gets what is measured. `kernels`: the implementation that tasks are
  // restricted to, part of a problem.
  MeasuredCosts(const DeviceGraph& machine, TaskTimes& times, TaskTimer timer, std::string kernels = "");

  TaskTime task(const Task& task, int device) override;
  TaskTime measure(const Task& task, int device) override;
  // In proportion to a measured one, where `times` has it.
  Seconds update(Bytes parameters, int device) override;
  static constexpr Bytes measured_update{int64_t{16} << 20};
  static constexpr const char* update_problem = "update of 16 MiB of parameters, with momentum";
  // What AnalyticCosts says. Where the machine's file has measured sums, times a correction: what a sum of
  // the first devices took over what it should have taken.
  Seconds collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) override;

  int measurements() const { return measurements_; }

 private:
  const TaskTime* find(const Task& task) const;
  TaskTime bound(const Task& task) const;
  TaskTime on(int device, TaskTime time) const;
  std::string key_of(const Task& task, bool& named) const;
  double sum_factor(size_t members, Bytes bytes);

  DeviceGraph machine_;
  int fastest_ = 0;                // of the devices
  std::vector<double> slowdowns_;  // per device, against the fastest; empty: all are alike
  TaskTimes& times_;
  TaskTimes unnamed_{"", ""};  // of tasks without a text: for this run alone
  TaskTimer timer_;
  std::string kernels_;
  double share_ = 0.8;  // of the bounds
  int measurements_ = 0;
};

}  // namespace cortado
