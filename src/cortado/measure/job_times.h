#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/cost/task_times.h"
#include "cortado/device/memory.h"
#include "cortado/exec/time_task.h"
#include "cortado/machine/device_graph.h"
#include "cortado/measure/cache.h"

namespace cortado {

// What the machine that this job runs on is, and what tasks take on it, at every rank the same. Both are
// measured where the cache (cache.h) does not have them. All ranks make it, ask the same of it in the same
// order, and save it.
//
// The machine's links, and what its ranks compute beside each other, are looked at each time: where a quick
// measurement is far from what is kept, the machine is measured anew.
class JobTimes {
 public:
  // `notify`: called on the first rank. `device`: this rank's.
  explicit JobTimes(Communicator& job, Notices notify = nullptr,
                    device::DeviceRuntime& device = device::host());

  Communicator& job() const { return job_; }
  void notify(const std::string& line) const;
  const DeviceGraph& machine() const { return *machine_; }
  bool equal_processors() const { return equal_processors_; }  // and equal devices
  bool mixed_devices() const { return mixed_devices_; }        // of several kinds
  device::DeviceRuntime& device() const { return device_; }
  bool machine_measured() const { return machine_measured_; }

  // Measures a task on the kernels of that name (time_task), and keeps nothing. A task of a layer that
  // several ranks share is run by all of them at the same time, as in an iteration, and the time of the
  // slowest among the fast ranks counts (those within a tenth of the fastest); any other by one rank while
  // the others wait. All ranks call it.
  TaskTime measure(const Task& task, const std::string& kernels, int most_runs = usual_runs) const;

  // Durations beside tasks, as of trials: kept for this job's machine, links included, by a text that says
  // what took that long.
  std::optional<Seconds> known(const std::string& what) const;
  void keep(const std::string& what, Seconds seconds);
  // The time of a task on the kernels of that name, where it is kept. Only tasks with a text are.
  const TaskTime* known(const Task& task, const std::string& kernels) const;
  void keep(const Task& task, const std::string& kernels, const TaskTime& time);
  // All of them; what is added there is saved, too.
  TaskTimes& table() { return *times_; }
  void save();

 private:
  std::string on_machine(const std::string& what) const;
  void find_machine();
  void find_times();
  bool agrees(const DeviceGraph& kept) const;  // with the machine as it is
  bool links_agree(const DeviceGraph& kept) const;
  bool rates_agree(const DeviceGraph& kept) const;
  void find_fast_ranks();
  Seconds slowest(const std::vector<Seconds>& ranks) const;
  TaskTime slowest(uint64_t problem, const PassTimes& mine) const;
  double rate() const;  // of this rank, to be compared with those of others
  Seconds update_once(const device::Memory& memory) const;
  void measure_update();

  Communicator& job_;
  Notices notify_;
  device::DeviceRuntime& device_;
  std::string about_;                      // the machine, as far as times of tasks depend on it
  std::string machine_file_, times_file_;  // in the cache
  std::unique_ptr<DeviceGraph> machine_;
  std::vector<bool> fast_;  // per rank: as fast as the fastest; its times count
  int alone_ = 0;           // the rank that times what one device does; the fastest
  std::unique_ptr<TaskTimes> times_;
  std::string kept_;  // the table's text as the cache has it
  bool equal_processors_ = true, mixed_devices_ = false, on_devices_ = false, machine_measured_ = false;
};

}  // namespace cortado
