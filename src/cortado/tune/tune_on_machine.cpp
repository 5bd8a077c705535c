#include "cortado/tune/tune_on_machine.h"

#include <algorithm>
#include <limits>

namespace cortado {
namespace {

// What a rank of the program holds: activations, parameters, their gradients and momentum.
Bytes held_by(const Program& program) {
  Bytes held = program.arena;
  for (const Layout& slices : program.placement->slices) {
    const auto& own = slices[static_cast<size_t>(program.rank)];
    if (own) held += {3 * bytes_of(own->shape()).count};
  }
  return held;
}

}  // namespace

TunedStrategy tune_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                      const TuneOptions& options) {
  bool first = true;
  const auto seconds = [&](const Strategy& strategy) {
    const SimulatedJob job =
        simulate_job(network, resolve(strategy, network, machine.graph.devices(), "tuned strategy"),
                     strategy.schedule, machine);
    const bool fits = std::ranges::all_of(job.programs, [&](const Program& program) {
      const Bytes memory = machine.graph.device(program.rank).memory;
      return memory.count == 0 || held_by(program) <= memory;
    });
    const bool counts = fits || first;
    first = false;
    return counts ? job.simulation.iteration : Seconds{std::numeric_limits<double>::infinity()};
  };
  return tune_strategy(start, network, machine.graph.devices(), seconds, options);
}

}  // namespace cortado
