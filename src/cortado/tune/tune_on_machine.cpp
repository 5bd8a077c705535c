#include "cortado/tune/tune_on_machine.h"

#include <algorithm>
#include <limits>

#include "cortado/program/held_memory.h"

namespace cortado {

TunedStrategy tune_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                      const TuneOptions& options, int history) {
  bool first = true;
  const auto seconds = [&](const Strategy& strategy) {
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
  return tune_strategy(start, network, machine.graph.devices(), seconds, options);
}

}  // namespace cortado
