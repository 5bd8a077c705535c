#include "cortado/auto/trial.h"

#include <algorithm>
#include <chrono>

#include "cortado/comm/values_of_ranks.h"
#include "cortado/measure/measured_kernels.h"
#include "cortado/train/resident_data.h"

namespace cortado {

std::vector<IterationTimes> run_iterations(Executor& executor, Optimizer& optimizer, int count,
                                           const std::function<void(const IterationTimes&)>& each) {
  std::vector<IterationTimes> times;
  for (int i = -warm_up_iterations; i < count; ++i) {
    const int iteration = i + warm_up_iterations;
    const Optimizer::Batch batch{.iteration = iteration, .rate = 1e-6};
    const auto start = std::chrono::steady_clock::now();
    executor.run(static_cast<uint64_t>(iteration),
                 [&optimizer, batch](int entry) { optimizer.gradient(entry, batch); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (i < 0) continue;
    times.push_back(times_of(executor.program(), executor.timeline(), seconds.count(),
                             executor.exposed_communication().count, executor.data_wait().count));
    if (each) each(times.back());
  }
  executor.settle();
  return times;
}

Seconds try_strategy(const Network& network, Communicator& job, const Strategy& strategy, JobCosts& costs) {
  constexpr int iterations = 3;
  ResidentData data(network);
  ParameterStore parameters;
  CompileOptions options{.strategies = resolve(strategy, network, job.size(), "strategy auto"),
                         .schedule = strategy.schedule,
                         .ranks = job.size(),
                         .rank = job.rank()};
  options.kernels = costs.kernels() == measured_kernels
                        ? choose_measured(network, options, costs.times(), Algorithms::Effort::quick)
                        : KernelChoice{.only = costs.kernels()};
  Compiled compiled = compile(network, std::move(options));
  data.restrict_to(compiled.program.samples());
  Executor executor(network, std::move(compiled), parameters, data.sources(), {.communicator = &job});
  SolverOptions solver;
  solver.update.momentum = 0.9;
  Optimizer optimizer(solver, parameters, parameter_cut_of(executor, &job));
  const auto times = run_iterations(executor, optimizer, iterations);
  return {std::ranges::max(values_of_ranks(job, std::ranges::min(times, {}, &IterationTimes::step).step))};
}

}  // namespace cortado
