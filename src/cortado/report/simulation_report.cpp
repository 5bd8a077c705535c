#include "cortado/report/simulation_report.h"

#include <fmt/format.h>

#include "cortado/program/volume.h"

namespace cortado {
namespace {

LayerParts parts_of(const Seconds (&seconds)[std::size(step_parts)]) {
  LayerParts parts;
  for (StepPart part : step_parts) {
    Seconds& sum = part == StepPart::sync       ? parts.sync
                   : part == StepPart::transfer ? parts.transfer
                                                : parts.compute;
    sum += seconds[static_cast<size_t>(part)];
  }
  return parts;
}

}  // namespace

TimeReport report_of(const SimulatedJob& simulated, const Network& network, const DeviceGraph& machine) {
  const Simulation& simulation = simulated.simulation;
  const Program& first = simulated.programs.front();
  const std::span<const TimelineEntry> own(simulation.timeline.data(), first.steps.size());
  const Seconds exposed = simulation.ends[0] - simulation.computing[0];
  TimeReport report = report_of(network, first, {times_of(first, own, simulation.iteration, exposed, {})});
  report.ranks = machine.devices();
  report.flops = {};
  for (const Program& program : simulated.programs) {
    const double ranks = simulated.blocks.stands_for(program.rank);
    report.flops += {ranks * flops_of(network, program).count};
    report.bytes += ranks * static_cast<double>(volumes_of(program).total().sent.count);
  }
  const ElementType products = network.precision() == Precision::bf16 ? ElementType::bf16 : ElementType::f32;
  for (int device = 0; device < machine.devices(); ++device)
    report.peak.per_second += machine.device(device).peak_of(products).per_second;
  report.of_peak = fmt::format("peak of {} devices", machine.devices());
  return report;
}

std::vector<TraceSlice> slices_of_job(const SimulatedJob& job, const Network& network) {
  std::vector<TraceSlice> slices;
  auto next = job.simulation.timeline.begin();
  for (const Program& program : job.programs) {
    const auto end = next + std::ssize(program.steps);
    const auto own = trace_slices({next, end}, program, network, job.simulation.iteration);
    slices.insert(slices.end(), own.begin(), own.end());
    next = end;
  }
  return slices;
}

RunPrediction run_prediction_of(const SimulatedJob& simulated, const std::vector<PredictedLayer>& layers,
                                const Network& network) {
  RunPrediction prediction;
  prediction.step = simulated.simulation.iteration;
  prediction.slices = slices_of_job(simulated, network);
  for (const PredictedLayer& layer : layers) {
    const LayerParts predicted = parts_of(layer.predicted), measured = parts_of(layer.measured);
    prediction.one_by_one += predicted.total();
    if (measured.total().count > 0) prediction.layers.push_back({layer.name, predicted, measured});
  }
  return prediction;
}

RunReport run_report_of(const SimulatedJob& simulated, const TimeReport& times, const Network& network,
                        const DeviceGraph& machine, const std::string& strategy) {
  const std::string about = fmt::format("simulated on {} {} of machine {}, batch {}, strategy {}",
                                        machine.devices(), machine.devices() == 1 ? "device" : "devices",
                                        machine.machine().name, times.images, strategy);
  RunReport report = run_report_of(times, network, about, slices_of_job(simulated, network));
  report.simulated = true;
  return report;
}

}  // namespace cortado
