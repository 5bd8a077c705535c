#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/cost/measured.h"
#include "cortado/exec/time_task.h"

namespace cortado {

// What things cost on the machine that this job runs on, at every rank the same. Figures of the machine and
// times of tasks are measured where the cache (cache.h) does not have them. All ranks make it, ask the same
// of it in the same order, and save it.
//
// A task of a layer that several ranks share is run by all of them at the same time, as in an iteration, and
// the slowest of the fastest counts; any other by one rank while the others wait. The machine's links, and
// what its ranks compute beside each other, are looked at each time: where a quick measurement is far from
// what is kept, the machine is measured anew.
class JobCosts {
 public:
  JobCosts(Communicator& job, std::string kernels);

  CostModel& costs() { return *costs_; }
  const DeviceGraph& machine() const { return *machine_; }
  int measurements() const { return costs_->measurements(); }
  bool machine_measured() const { return machine_measured_; }
  // What is kept of this job's machine, links included, beside tasks: by a text that says what was measured.
  std::optional<Seconds> known(const std::string& what) const;
  void keep(const std::string& what, Seconds seconds);
  // The time of a task on the kernels of that name, where it is kept. Only tasks with a text are.
  const TaskTime* known(const Task& task, const std::string& kernels) const;
  void keep(const Task& task, const std::string& kernels, const TaskTime& time);
  void save();

 private:
  std::string on_machine(const std::string& what) const;
  void find_machine();
  void find_times();
  bool agrees(const DeviceGraph& kept) const;  // with the machine as it is
  bool links_agree(const DeviceGraph& kept) const;
  bool rates_agree(const DeviceGraph& kept) const;
  void find_fast_ranks();
  TaskTime time(const Task& task);
  TaskTime slowest(uint64_t problem, const PassTimes& mine) const;
  void measure_update();

  Communicator& job_;
  std::string kernels_;
  std::string about_;                      // the machine, as far as times of tasks depend on it
  std::string machine_file_, times_file_;  // in the cache
  std::unique_ptr<DeviceGraph> machine_;
  std::vector<bool> fast_;  // per rank: as fast as the fastest; its times count
  int alone_ = 0;           // the rank that times what one device does; the fastest
  std::unique_ptr<TaskTimes> times_;
  std::unique_ptr<MeasuredCosts> costs_;
  bool machine_measured_ = false, kept_more_ = false, told_ = false;
};

}  // namespace cortado
