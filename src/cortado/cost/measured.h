#pragma once

#include <functional>
#include <map>
#include <string>

#include "cortado/cost/analytic.h"
#include "cortado/cost/task_times.h"

namespace cortado {

// Runs a task and returns how long it took. A task whose layer several devices share (Task::cut) runs on
// every device of the job at the same time, since devices of a host load its memory together; others run on
// one alone.
using TaskTimer = std::function<TaskTime(const Task&)>;

// Costs of tasks are measured, each problem once; other costs are the machine's (analytic.h). The timer
// measures on the fastest devices. On a slower device a task takes longer by the ratio of their weights
// (DeviceGraph::weights).
//
// A task that was not measured costs a bound from below: products (convolutions, inner products) cannot do
// more operations in a second than `peak`, with Winograd's algorithm 2.25 times as many in the direct count,
// and 4 times where `kernels` are given. Other tasks have the bound 0. A fifth is taken off, since a peak is
// measured, too. Where a measurement is still below its bound (taps in the padding need no computing), all
// later bounds are lowered with it.
class MeasuredCosts : public AnalyticCosts {
 public:
  // `times` must outlive it and gets what is measured. `kernels`: the implementation that tasks are
  // restricted to, part of a problem.
  MeasuredCosts(const DeviceGraph& machine, TaskTimes& times, TaskTimer timer, std::string kernels = "");

  TaskTime task(const Task& task, int device) override;
  TaskTime measure(const Task& task, int device) override;
  // Counts in proportion to a measured update, where `times` has one.
  Seconds update(Bytes parameters, int device) override;
  static constexpr Bytes measured_update{int64_t{16} << 20};
  static constexpr const char* update_name = "update of 16 MiB of parameters, with momentum";
  // What AnalyticCosts says. Where the machine's file has measured sums, times a correction: what a sum of
  // the first devices took over what it should have taken.
  Seconds collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) override;

  int measurements() const { return measurements_; }

 private:
  const TaskTime* find(const Task& task) const;
  TaskTime bound(const Task& task) const;
  TaskTime on(int device, TaskTime time) const;
  double sum_factor(size_t members, Bytes bytes);

  DeviceGraph machine_;
  int fastest_ = 0;                // of the devices
  std::vector<double> slowdowns_;  // per device, against the fastest; empty: all are equal
  TaskTimes& times_;
  TaskTimer timer_;
  std::string kernels_;
  double share_ = 0.8;  // of the bounds
  int measurements_ = 0;
};

}  // namespace cortado
