#include "cortado/measure/measured_kernels.h"

#include <algorithm>
#include <map>
#include <set>

#include "cortado/layers/problem.h"

namespace cortado {
namespace {

// Key of the tasks that must run on the same implementation: those of replicas of the same weights, of halves
// of a batch, and of a gradient that is computed apart.
std::string weights_of(const Task& task) {
  Task all = of_all_replicas(task);
  all.layers.resize(1);
  all.input_gradients.assign(all.inputs.size(), true);
  all.parameter_gradients.assign(all.layer().parameters(all.inputs).size(), true);
  return problem_of(all);
}

// The convolutions of all ranks, each problem once.
std::vector<Task> convolutions_of_job(const Network& network, const CompileOptions& options) {
  KernelProfile profile = KernelProfile::unknown();  // the same at all ranks
  std::vector<Task> tasks;
  std::set<std::string> problems;
  for (const Program& program : compile_job(network, options, profile))
    for (const Work& work : program.works)
      if (work.kind == Work::Kind::compute && is_convolution(work.task) &&
          problems.insert(problem_of(work.task)).second)
        tasks.push_back(work.task);
  return tasks;
}

// The implementation that takes least for all of these together; "" where none was measured for each.
std::string fastest_of(const std::vector<const AlgorithmTable*>& tables) {
  std::string fastest;
  Seconds least;
  for (const Algorithm& candidate : tables.front()->algorithms) {
    Seconds sum;
    const bool known = std::ranges::all_of(tables, [&](const AlgorithmTable* table) {
      const auto here = std::ranges::find(table->algorithms, candidate.name, &Algorithm::name);
      if (here == table->algorithms.end() || !here->time) return false;
      sum += here->time->total();
      return true;
    });
    if (known && (fastest.empty() || sum < least)) fastest = candidate.name, least = sum;
  }
  return fastest;
}

}  // namespace

KernelChoice choose_measured(const Network& network, const CompileOptions& options, JobTimes& times,
                             Algorithms::Effort effort) {
  const std::vector<Task> tasks = convolutions_of_job(network, options);
  const std::vector<AlgorithmTable> tables = Algorithms(times).tables(tasks, effort);
  std::map<std::string, std::vector<const AlgorithmTable*>> of_weights;
  for (size_t i = 0; i < tasks.size(); ++i) of_weights[weights_of(tasks[i])].push_back(&tables[i]);
  std::map<std::string, std::string> chosen;
  for (const auto& [weights, of_them] : of_weights) chosen[weights] = fastest_of(of_them);
  return {.kernels = "", .of_task = [chosen = std::move(chosen)](const Task& task) {
            const auto found = is_convolution(task) ? chosen.find(weights_of(task)) : chosen.end();
            return found == chosen.end() ? std::string() : found->second;
          }};
}

}  // namespace cortado
