#include "cortado/api/simulation.h"

#include "cortado/api/impl/machine.h"
#include "cortado/api/impl/network.h"
#include "cortado/api/impl/simulation.h"
#include "cortado/api/impl/strategy.h"
#include "cortado/auto/choose_on_machine.h"
#include "cortado/auto/recompute.h"
#include "cortado/report/simulation_report.h"

namespace cortado::api {

namespace {

cortado::Strategy strategy_on(const DeviceGraph& machine, const cortado::Network& network,
                              const Strategy::Impl& asked) {
  const std::string name = asked.name.empty() ? "auto" : asked.name;
  cortado::Strategy strategy =
      asked.parsed ? *asked.parsed : choose_on_machine(name, network, machine).strategy;
  asked.apply_schedules(network, strategy);
  for (const Schedule& said : asked.schedules)
    recompute_on_machine(changes_of(said), network, machine, strategy, as_field);
  return strategy;
}

}  // namespace

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
  const cortado::Strategy chosen = strategy_on(graph, cut, strategy.impl());
  const NodeStrategies strategies =
      resolve(chosen, cut, graph.devices(), strategy.name().empty() ? "auto" : strategy.name());
  SimulatedJob job =
      simulate_job(cut, strategies, chosen.schedule, AbsentMachine(graph).simulated(), SimulatedRanks::all);
  TimeReport times = report_of(job, cut, graph);
  std::vector<TraceSlice> slices = slices_of_job(job, cut);
  return Simulation(std::make_shared<const Simulation::Impl>(
      Simulation::Impl{network, graph, std::move(job), std::move(slices), std::move(times)}));
}

}  // namespace cortado::api
