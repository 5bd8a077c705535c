#pragma once

#include <map>
#include <optional>
#include <string>

#include "cortado/cost/cost_model.h"

namespace cortado {

// Measured times of tasks (by problem_of), and durations of other things that a text names, of one machine
// and one build: what is measured once and kept in a file.
class TaskTimes {
 public:
  // `machine`: all of it that times depend on, as text; `build`: version and build of this program.
  TaskTimes(std::string machine, std::string build)
      : machine_(std::move(machine)), build_(std::move(build)) {}

  const TaskTime* find(const std::string& problem) const;  // null: not known
  void add(const std::string& problem, const TaskTime& time) { tasks_[problem] = time; }
  int size() const { return static_cast<int>(tasks_.size()); }  // tasks

  std::optional<Seconds> find_duration(const std::string& what) const;  // nothing: not known
  void add_duration(const std::string& what, Seconds seconds) { durations_[what] = seconds; }

  // The file: JSON, version 2. read() adds what a file holds; throws UserError, and adds nothing, unless all
  // of it is in order and of this machine and build.
  std::string text() const;
  void read(const std::string& json, const std::string& where);

 private:
  std::string machine_, build_;
  std::map<std::string, TaskTime> tasks_;
  std::map<std::string, Seconds> durations_;
};

}  // namespace cortado
