#include "cortado/sim/simulated_job.h"

#include <algorithm>
#include <memory>

namespace cortado {
namespace {

// How many devices a block may have a multiple of: those of a node where all nodes are alike, else all.
int alike(const DeviceGraph& graph) {
  const Machine& machine = graph.machine();
  Node first = machine.nodes.front();
  const bool equal = machine.pairs.empty() && std::ranges::all_of(machine.nodes, [&](const Node& node) {
                       first.name = node.name;
                       return node == first;
                     });
  return equal ? static_cast<int>(first.devices.size()) : graph.devices();
}

}  // namespace

SimulatedJob simulate_job(const Network& network, const NodeStrategies& strategies, const Schedule& schedule,
                          const SimulatedMachine& machine, SimulatedRanks ranks) {
  const int devices = machine.graph.devices();
  const CompileOptions options{.strategies = strategies, .schedule = schedule, .ranks = devices};
  const std::shared_ptr<const Placement> placement = placement_of(network, options);
  SimulatedJob job;
  job.blocks =
      ranks == SimulatedRanks::all ? EqualBlocks{devices, 1} : equal_blocks(*placement, alike(machine.graph));
  job.programs = compile_ranks(network, placement, options, machine.kernels, job.blocks.different());
  job.simulation = simulate(job.programs, job.blocks, machine.costs, machine.graph);
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
