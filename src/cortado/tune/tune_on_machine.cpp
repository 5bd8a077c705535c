#include "cortado/tune/tune_on_machine.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "cortado/program/held_memory.h"
#include "cortado/sim/step_seconds.h"

namespace cortado {
namespace {

// Judges strategies by simulation. Those under which a rank would hold more than its device has take forever;
// only the first one may.
std::function<Seconds(const Strategy&)> fitting_seconds(const SimulatedMachine& machine,
                                                        const Network& network, int history) {
  return [machine, &network, history, first = true](const Strategy& strategy) mutable {
    const SimulatedJob job =
        simulate_job(network, resolve(strategy, network, machine.graph.devices(), "tuned strategy"),
                     strategy.schedule, machine);
    const bool fits = std::ranges::all_of(job.programs, [&](const Program& program) {
      const Bytes memory = machine.graph.device(program.rank).memory;
      return memory.count == 0 || held_memory(program, network, history).total() <= memory;
    });
    const bool counts = fits || first;
    first = false;
    return counts ? job.simulation.iteration : Seconds{std::numeric_limits<double>::infinity()};
  };
}

// Seconds of each node in a rank's computing. What a chain takes is its first layer's; an update is of the
// layer that declares the parameter first.
IndexedVector<NodeIndex, Seconds> computing_of(const Program& program, const Network& network,
                                               const SimulatedMachine& machine) {
  IndexedVector<NodeIndex, Seconds> seconds(network.nodes().size());
  const std::vector<int> nodes = machine.graph.node_of_devices();
  StepSeconds of_steps(program, machine.costs, nodes);
  for (const Step& step : program.steps) {
    if (step.is<steps::Compute>())
      seconds[program.works[step.work()].nodes[0]] += of_steps.of(step);
    else if (const auto* update = step.as<steps::Update>())
      seconds[network.parameters()[update->parameter].declared_by] += of_steps.of(step);
  }
  return seconds;
}

// Ranks times layers that a search of full effort simulates; fewer strategies than `worth_a_search` find
// nothing.
constexpr double full_work = 300'000;
constexpr int worth_a_search = 20;

}  // namespace

TunedStrategy tune_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                      const TuneOptions& options, int history) {
  return tune_strategy(start, network, machine.graph.devices(), fitting_seconds(machine, network, history),
                       options);
}

PlacedStrategy place_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                        int history, double effort) {
  const auto computing = [&](const Strategy& strategy) {
    const int ranks = machine.graph.devices();
    const auto programs = compile_job(network,
                                      {.strategies = resolve(strategy, network, ranks, "placed strategy"),
                                       .schedule = strategy.schedule,
                                       .ranks = ranks},
                                      machine.kernels);
    std::vector<IndexedVector<NodeIndex, Seconds>> all;
    for (const Program& program : programs) all.push_back(computing_of(program, network, machine));
    return all;
  };
  const double work =
      static_cast<double>(machine.graph.devices()) * static_cast<double>(network.nodes().size());
  const int most = static_cast<int>(effort * full_work / work);
  return place_branches(start, network, machine.graph,
                        {fitting_seconds(machine, network, history), computing},
                        {.most_tried = most < worth_a_search ? 1 : most});
}

}  // namespace cortado
