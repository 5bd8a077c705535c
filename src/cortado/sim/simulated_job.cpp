#include "cortado/sim/simulated_job.h"

namespace cortado {

SimulatedJob simulate_job(const Network& network, const NodeStrategies& strategies, const Schedule& schedule,
                          const SimulatedMachine& machine) {
  SimulatedJob job;
  job.programs =
      compile_job(network, {.strategies = strategies, .schedule = schedule, .ranks = machine.graph.devices()},
                  machine.kernels);
  job.simulation = simulate(job.programs, machine.costs, machine.graph);
  return job;
}

std::function<Seconds(const Strategy&)> simulated_seconds(const Network& network,
                                                          const SimulatedMachine& machine) {
  return [&network, machine](const Strategy& strategy) {
    const NodeStrategies strategies = resolve(strategy, network, machine.graph.devices(), "strategy auto");
    return simulate_job(network, strategies, strategy.schedule, machine).simulation.iteration;
  };
}

}  // namespace cortado
