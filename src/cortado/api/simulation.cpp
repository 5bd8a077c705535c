#include "cortado/api/simulation.h"

#include "cortado/api/impl/machine.h"
#include "cortado/api/impl/network.h"
#include "cortado/api/impl/simulation.h"
#include "cortado/api/impl/strategy.h"
#include "cortado/plan/choice.h"
#include "cortado/report/simulation_report.h"

namespace cortado::api {

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
double Simulation::exposed_communication() const { return impl_->times.exposed.count; }
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
  TimeReport times = report_of(job, cut, graph);
  std::vector<TraceSlice> slices = slices_of_job(job, cut);
  return Simulation(std::make_shared<const Simulation::Impl>(
      Simulation::Impl{network, graph, std::move(job), std::move(slices), std::move(times)}));
}

}  // namespace cortado::api
