#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cortado/compile/compile.h"
#include "cortado/cost/algorithm_table.h"
#include "cortado/measure/job_times.h"
#include "cortado/net/network.h"
#include "cortado/program/program.h"

namespace cortado {

// A word in place of an implementation's name: for each convolution the fastest measured, for others the
// list.
inline constexpr const char* measured_kernels = "measured";

// Whether a task has algorithms to choose from.
bool is_convolution(const Task& task);

// The automatic optimizer (Caffe con Troll, section 2.1 and appendix A): the cost model ranks the lowerings
// and leaves out those far slower than the best of them; the others are measured in turns, and the fastest is
// picked. Times are kept with those of the job: a problem is measured once on a machine. All ranks ask for
// the same problems in the same order and get the same answers: what one rank refuses is refused, and the
// slowest rank's time counts.
class Algorithms {
 public:
  // `times` must outlive it. `kernels`: fast_math, or none (kernels/select.h).
  explicit Algorithms(JobTimes& times, std::string kernels = "")
      : times_(times), kernels_(std::move(kernels)) {}

  // thorough: until the pick is sure, and kept. quick: two rounds, for plans.
  enum class Effort { quick, thorough };
  // Takes turns over all tasks, so that no task is measured only while the machine is slow.
  std::vector<AlgorithmTable> tables(const std::vector<Task>& tasks, Effort effort = Effort::thorough);
  // The time of the pick, with quick effort.
  TaskTime fastest(const Task& task);

 private:
  // The algorithms of a task that are to be measured, and the best time so far.
  struct Contest {
    const Task& task;
    std::vector<Algorithm*> contenders;
    Seconds best;
  };

  AlgorithmTable ranked(const Task& task) const;
  void agree(std::vector<Algorithm>& algorithms) const;
  int listed(const Task& task, const std::vector<Algorithm>& algorithms) const;
  void rank(const Task& task, AlgorithmTable& table) const;
  Contest contest(const Task& task, AlgorithmTable& table);
  void take_turn(int round, Effort effort, Contest& contest);

  JobTimes& times_;
  std::string kernels_;
};

// The convolutions of a program in its order, each problem once.
std::vector<NetConvolution> convolutions_of(const Network& network, const Program& program,
                                            Algorithms& algorithms);

// Those of a network that this rank, a job's only one, compiles so, measured; with the peak of its threads.
struct MeasuredConvolutions {
  std::vector<NetConvolution> convolutions;
  FlopRate peak;
};
MeasuredConvolutions measure_convolutions(const Network& network, CompileOptions options, JobTimes& times);

}  // namespace cortado
