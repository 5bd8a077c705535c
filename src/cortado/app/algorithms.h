#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cortado/app/job_costs.h"

namespace cortado {

// One way to compute a convolution: what the cost model says of it (kernels/lowering/cost.h) and what it
// takes, or why it is not measured.
struct Algorithm {
  std::string name;
  std::string refusal;  // of the implementation
  std::string pruned;   // why it need not be measured
  Seconds predicted;    // of all passes
  Bytes scratch;
  std::optional<TaskTime> time;
};

// Those of a task, as the list of implementations has them.
struct AlgorithmTable {
  std::vector<Algorithm> algorithms;
  int listed = -1;   // the first of the list that accepts: what runs where nobody measures
  int pick = -1;     // the fastest measured, all passes together
  double flops = 0;  // of a pass, multiply-adds counted two
};

// Whether a task has algorithms to choose from.
bool is_convolution(const Task& task);

// The automatic optimizer (Caffe con Troll, section 2.1 and appendix A): the cost model ranks the lowerings
// and leaves out those far behind the best of them; the others are measured in turns, and the fastest is
// picked. Times are kept with those of the job's costs: a problem is measured once on a machine.
class Algorithms {
 public:
  // For a job of one rank. `costs` must outlive it. `kernels`: fast_math, or none (kernels/kernel.h).
  explicit Algorithms(JobCosts& costs, std::string kernels = "")
      : costs_(costs), kernels_(std::move(kernels)) {}

  // In turns over all tasks, so that no task falls into a time when the machine is slow.
  std::vector<AlgorithmTable> tables(const std::vector<Task>& tasks);
  // The name of the pick; "" for a task that has nothing to choose.
  std::string choose(const Task& task);

 private:
  // The algorithms of a task that are to be measured, and the best time so far.
  struct Contest {
    const Task& task;
    std::vector<Algorithm*> contenders;
    Seconds best;
  };

  AlgorithmTable ranked(const Task& task) const;
  void rank(const Task& task, AlgorithmTable& table) const;
  Contest contest(const Task& task, AlgorithmTable& table);
  void take_turn(int round, Contest& contest);

  JobCosts& costs_;
  std::string kernels_;
};

}  // namespace cortado
