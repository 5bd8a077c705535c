#pragma once

#include <map>
#include <string>

#include "cortado/cost/cost_model.h"

namespace cortado {

// Measured times of tasks (by problem_of) and of other things that a text names, of one machine and one
// build: what is measured once and kept in a file.
class TaskTimes {
 public:
  // `machine`: all of it that times depend on, as text; `build`: version and build of this program.
  TaskTimes(std::string machine, std::string build)
      : machine_(std::move(machine)), build_(std::move(build)) {}

  const TaskTime* find(const std::string& problem) const;  // null: not known
  void add(const std::string& problem, const TaskTime& time) { times_[problem] = time; }
  int size() const { return static_cast<int>(times_.size()); }

  // The file: JSON, version 1. read() adds what a file holds; throws UserError, and adds nothing, unless all
  // of it is in order and of this machine and build.
  std::string text() const;
  void read(const std::string& json, const std::string& where);

 private:
  std::string machine_, build_;
  std::map<std::string, TaskTime> times_;
};

}  // namespace cortado
