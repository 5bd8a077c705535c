#include "cortado/tune/tune_on_machine.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "cortado/program/held_memory.h"
#include "cortado/sim/ports.h"
#include "cortado/sim/step_seconds.h"

namespace cortado {
namespace {

// Judges strategies by simulation. Those under which a rank would hold more than its device has take forever;
// only the first one may.
std::function<Seconds(const Strategy&)> fitting_seconds(const SimulatedMachine& machine,
                                                        const Network& network, int history, Bytes limit) {
  return [machine, &network, history, limit, first = true](const Strategy& strategy) mutable {
    const SimulatedJob job =
        simulate_job(network, resolve(strategy, network, machine.graph.devices(), "tuned strategy"),
                     strategy.schedule, machine);
    const bool fits = std::ranges::all_of(job.programs, [&](const Program& program) {
      const Bytes own = machine.graph.device(program.rank).memory;
      const Bytes memory = limit.count > 0 && (own.count == 0 || limit < own) ? limit : own;
      return memory.count == 0 || held_memory(program, network, history).total() <= memory;
    });
    const bool counts = fits || first;
    first = false;
    return counts ? job.simulation.iteration : Seconds{std::numeric_limits<double>::infinity()};
  };
}

// What a rank's program does, alone. A chain is its first layer's; an update is of the layer that declares
// the parameter first.
class PartsOfProgram {
 public:
  PartsOfProgram(const Program& program, const Network& network, const SimulatedMachine& machine)
      : program_(program),
        network_(network),
        nodes_(machine.graph.node_of_devices()),
        seconds_(program, machine.costs, nodes_),
        ports_(machine.graph) {
    parts_.nodes.resize(network.nodes().size());
  }

  DeviceParts run() {
    for (const Step& step : program_.steps) {
      if (const auto* compute = step.as<steps::Compute>())
        add(*compute, seconds_.of(step));
      else if (const auto* update = step.as<steps::Update>())
        parts_.nodes[network_.parameters()[update->parameter].declared_by].update += seconds_.of(step);
      else if (step.is<steps::Exchange>())
        add_exchange(step);
    }
    return std::move(parts_);
  }

 private:
  void add(const steps::Compute& compute, Seconds seconds) {
    const Work& work = program_.works[compute.work];
    DeviceParts::OfNode& node = parts_.nodes[work.nodes[0]];
    node.here = true;
    if (is_forward(compute.pass) && !compute.again)
      node.forward += seconds;
    else if (compute.pass == Pass::backward_weights && work.input_gradients_first)
      node.after += seconds;
    else
      node.gradient += seconds;
  }

  void add_exchange(const Step& step) {
    const auto& exchange = *step.as<steps::Exchange>();
    const Work& work = program_.works[exchange.work];
    const auto& operation = program_.first_operation(work);
    if (operation.kind != Placement::Operation::Kind::copy || !operation.node) return;
    const TensorIndex tensor = program_.placement->values[operation.inputs[0]].tensor;
    DeviceParts::Moved& moved = parts_.moved[{tensor, operation.node}];
    Seconds& longest = exchange.backward ? moved.back : moved.there;
    longest = std::max(longest, arrives(step));
  }

  // Until the longest message of an exchange has come, were all sent at once.
  Seconds arrives(const Step& step) {
    if (!step.group().empty()) return seconds_.of(step);
    const Movement movement = program_.movement_of(step);
    Seconds longest;
    for (const Movement::Part& part : movement.receives)
      longest = std::max(longest, ports_.message_seconds(part.peer, program_.rank,
                                                         bytes_of(part.box.shape(), movement.type())));
    return longest;
  }

  const Program& program_;
  const Network& network_;
  const std::vector<int> nodes_;  // of devices
  StepSeconds seconds_;
  const Ports ports_;
  DeviceParts parts_;
};

// Ranks times layers that a search of full effort simulates; fewer strategies than `worth_a_search` find
// nothing.
constexpr double full_work = 300'000;
constexpr int worth_a_search = 20;
constexpr double effort_of_cuts = 0.25;  // every cut is tried with every other one

int most_tried(const SimulatedMachine& machine, const Network& network, double effort) {
  const double work =
      static_cast<double>(machine.graph.devices()) * static_cast<double>(network.nodes().size());
  const int most = static_cast<int>(effort * full_work / work);
  return most < worth_a_search ? 1 : most;
}

}  // namespace

TunedStrategy tune_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                      const TuneOptions& options, int history) {
  return tune_strategy(start, network, machine.graph.devices(),
                       fitting_seconds(machine, network, history, {}), options);
}

StrategyCosts strategy_costs(const SimulatedMachine& machine, const Network& network, int history,
                             Bytes limit) {
  const auto devices = [machine, &network](const Strategy& strategy) {
    const int ranks = machine.graph.devices();
    const auto programs = compile_job(network,
                                      {.strategies = resolve(strategy, network, ranks, "placed strategy"),
                                       .schedule = strategy.schedule,
                                       .ranks = ranks},
                                      machine.kernels);
    std::vector<DeviceParts> all;
    for (const Program& program : programs) all.push_back(PartsOfProgram(program, network, machine).run());
    return all;
  };
  return {fitting_seconds(machine, network, history, limit), devices};
}

PlacedStrategy place_on(const SimulatedMachine& machine, const Network& network, const Strategy& start,
                        int history, double effort, Bytes limit) {
  return place_branches(start, network, machine.graph, strategy_costs(machine, network, history, limit),
                        {.most_tried = most_tried(machine, network, effort)});
}

std::optional<FoundCuts> search_cuts_on(const SimulatedMachine& machine, const Network& network,
                                        const Strategy& start, const std::vector<CutChoice>& choices,
                                        int history, Bytes limit) {
  const int most = most_tried(machine, network, effort_of_cuts);
  if (most == 1) return std::nullopt;
  return search_cuts(with_all_rules(start, network), network, choices,
                     strategy_costs(machine, network, history, limit), {.most_tried = most});
}

}  // namespace cortado
