#include "cortado/sim/iteration_parts.h"

#include <algorithm>
#include <span>

#include "cortado/program/exposure.h"
#include "cortado/sim/predict.h"

namespace cortado {

IterationParts parts_of(const SimulatedJob& job) {
  const Simulation& simulation = job.simulation;
  const auto busiest =
      static_cast<size_t>(std::ranges::max_element(simulation.computing) - simulation.computing.begin());
  size_t begin = 0;
  for (size_t rank = 0; rank < busiest; ++rank) begin += job.programs[rank].steps.size();
  const Program& program = job.programs[busiest];
  const std::span<const TimelineEntry> own(simulation.timeline.data() + begin, program.steps.size());
  Seconds exchange, sync;
  for (const Exposure& exposure : exposures_of(program, own, simulation.iteration))
    (part_of(program.steps[exposure.step]) == StepPart::sync ? sync : exchange) +=
        exposure.end - exposure.begin;
  IterationParts parts{.compute = simulation.computing[busiest], .exchange = {}, .sync = {}};
  // It also waits for ranks that end later.
  const double waits = std::max(0.0, (simulation.iteration - parts.compute).count);
  const double seen = (exchange + sync).count;
  if (seen > 0) parts.sync = {waits * sync.count / seen};
  parts.exchange = {waits - parts.sync.count};
  return parts;
}

}  // namespace cortado
