#include "cortado/auto/trial.h"

#include <algorithm>

#include "cortado/comm/values_of_ranks.h"
#include "cortado/measure/measured_kernels.h"
#include "cortado/train/resident_data.h"
#include "cortado/train/timed_run.h"

namespace cortado {

Seconds try_strategy(const Network& network, Communicator& job, const Strategy& strategy, JobCosts& costs,
                     device::DeviceRuntime& device) {
  constexpr int iterations = 3;
  ResidentData data(network);
  ParameterStore parameters(device);
  CompileOptions options{.strategies = resolve(strategy, network, job.size(), "strategy auto"),
                         .schedule = strategy.schedule,
                         .ranks = job.size(),
                         .rank = job.rank()};
  options.kernels = costs.kernels() == measured_kernels
                        ? choose_measured(network, options, costs.times(), Algorithms::Effort::quick)
                        : costs.kernel_choice();
  Compiled compiled = compile(network, std::move(options));
  std::map<std::string, BatchSource> sources = data.sources(compiled.program.samples());
  Executor executor(network, std::move(compiled), parameters, std::move(sources), {.communicator = &job});
  SolverOptions solver;
  solver.update.momentum = 0.9;
  Optimizer optimizer(solver, parameters, parameter_cut_of(executor, &job));
  const auto times = run_iterations(executor, optimizer, iterations);
  return std::ranges::max(values_of_ranks(job, std::ranges::min(times, {}, &IterationTimes::step).step));
}

std::vector<Seconds> try_in_turns(const std::vector<std::optional<Seconds>>& known,
                                  const std::function<Seconds(size_t candidate)>& run) {
  std::vector<Seconds> seconds;
  for (size_t i = 0; i < known.size(); ++i) seconds.push_back(known[i] ? *known[i] : run(i));
  for (const double disturbed : {1.5, 1.1}) {
    const Seconds near{disturbed * std::ranges::min(seconds).count};
    if (std::ranges::count_if(seconds, [&](Seconds one) { return one < near; }) < 2) break;
    for (size_t i = known.size(); i-- > 0;)
      if (!known[i] && seconds[i] < near) seconds[i] = std::min(seconds[i], run(i));
  }
  return seconds;
}

}  // namespace cortado
