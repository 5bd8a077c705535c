#include "cortado/app/simulated.h"

#include "cortado/exec/executor.h"
#include "cortado/program/lower.h"

namespace cortado {
namespace {

std::optional<TaskFacts> plain_facts(const Task& task) {
  return facts_of(*select_kernel(task, "reference").kernel);
}

}  // namespace

SimulatedJob simulate_job(const Network& network, const NodeStrategies& strategies, const Schedule& schedule,
                          CostModel& costs, const DeviceGraph& machine) {
  SimulatedJob job;
  const Placement placement = place(network, strategies, machine.devices());
  for (int rank = 0; rank < machine.devices(); ++rank)
    job.programs.push_back(
        lower(network, placement, plain_facts, {.rank = rank, .schedule = schedule, .after_pass = {}}));
  job.simulation = simulate(job.programs, costs, machine);
  return job;
}

std::function<Seconds(const Strategy&)> simulated_seconds(const Network& network, CostModel& costs,
                                                          const DeviceGraph& machine) {
  return [&](const Strategy& strategy) {
    const NodeStrategies strategies = resolve(strategy, network, machine.devices(), "strategy auto");
    return simulate_job(network, strategies, strategy.schedule, costs, machine).simulation.iteration;
  };
}

}  // namespace cortado
