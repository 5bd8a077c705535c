#include "cortado/api/simulation.h"

#include <fmt/format.h>

#include "cortado/api/impl/machine.h"
#include "cortado/api/impl/network.h"
#include "cortado/api/impl/simulation.h"
#include "cortado/api/impl/strategy.h"
#include "cortado/plan/choice.h"
#include "cortado/program/volume.h"
#include "cortado/report/run_report.h"

namespace cortado::api {
namespace {

TimeReport times_of(const SimulatedJob& job, const cortado::Network& network, const DeviceGraph& machine) {
  const cortado::Simulation& simulation = job.simulation;
  const Program& first = job.programs.front();
  const std::span<const TimelineEntry> own(simulation.timeline.data(), first.steps.size());
  const double exposed = (simulation.ends[0] - simulation.computing[0]).count;
  TimeReport report =
      report_of(network, first, {cortado::times_of(first, own, simulation.iteration.count, exposed, 0)});
  report.ranks = machine.devices();
  report.flops = 0;
  for (const Program& program : job.programs) {
    report.bytes += static_cast<double>(volumes_of(program).total().sent);
    report.flops += flops_of(network, program);
  }
  for (int device = 0; device < machine.devices(); ++device)
    report.peak += machine.device(device).peak.per_second;
  report.of_peak = fmt::format("peak of {} devices", machine.devices());
  return report;
}

std::vector<TraceSlice> slices_of(const SimulatedJob& job, const cortado::Network& network) {
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

}  // namespace

ChosenStrategy choose_on(const cortado::Network& network, const Strategy& asked, const DeviceGraph& machine) {
  const Strategy::Impl& strategy = asked.impl();
  const std::string name = strategy.name.empty() ? "auto" : strategy.name;
  if (strategy.parsed) return {strategy.load(network, machine.devices()), ""};
  ChosenStrategy chosen;
  if (name == "auto") {
    AbsentMachine absent(machine);
    plan::Choice choice =
        plan::choose(network, plan::pricing_for(machine), absent.costs(), machine.node_of_devices(),
                     machine.least_memory(), simulated_seconds(network, absent.simulated()));
    chosen = {std::move(choice.candidates[0].strategy), std::move(choice.misfit)};
  } else {
    chosen.strategy = load_strategy(name, network, machine.devices());
  }
  strategy.apply_schedules(network, chosen.strategy);
  return chosen;
}

double Simulation::seconds() const { return impl_->job.simulation.iteration.count; }
double Simulation::exposed_communication() const { return impl_->times.exposed; }
int64_t Simulation::bytes() const { return static_cast<int64_t>(impl_->times.bytes); }

std::vector<Simulation::Device> Simulation::devices() const {
  const cortado::Simulation& simulation = impl_->job.simulation;
  std::vector<Device> devices;
  for (size_t rank = 0; rank < simulation.ends.size(); ++rank) {
    const Seconds exposed = simulation.ends[rank] - simulation.computing[rank];
    devices.push_back({.end = simulation.ends[rank].count,
                       .computing = simulation.computing[rank].count,
                       .communicating = 0,
                       .exposed_communication = exposed.count});
  }
  for (const TraceSlice& slice : impl_->slices)
    if (slice.message()) devices[static_cast<size_t>(slice.rank)].communicating += slice.length().count;
  return devices;
}

std::vector<Simulation::Step> Simulation::timeline() const {
  std::vector<Step> steps;
  for (const TraceSlice& slice : impl_->slices)
    steps.push_back({.device = slice.rank,
                     .lane = slice.lane == cortado::Lane::compute ? Lane::compute : Lane::communication,
                     .name = slice.name,
                     .category = slice.category,
                     .layer = slice.layer,
                     .begin = slice.begin.count,
                     .end = slice.end.count});
  return steps;
}

std::string Simulation::text() const { return times_text(impl_->times); }
std::string Simulation::trace() const { return trace_json(impl_->slices); }

Simulation simulate(const Network& network, const Strategy& strategy, const Machine& machine) {
  const DeviceGraph& graph = machine.impl().graph;
  const cortado::Network& cut = network.impl().network();
  const ChosenStrategy chosen = choose_on(cut, strategy, graph);
  const NodeStrategies strategies =
      resolve(chosen.strategy, cut, graph.devices(), strategy.name().empty() ? "auto" : strategy.name());
  SimulatedJob job =
      simulate_job(cut, strategies, chosen.strategy.schedule, AbsentMachine(graph).simulated());
  TimeReport times = times_of(job, cut, graph);
  std::vector<TraceSlice> slices = slices_of(job, cut);
  return Simulation(std::make_shared<const Simulation::Impl>(
      Simulation::Impl{network, graph, std::move(job), std::move(slices), std::move(times)}));
}

}  // namespace cortado::api
