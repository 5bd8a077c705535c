#include "cortado/auto/refine_by_simulation.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "cortado/plan/groups.h"
#include "cortado/tune/iteration_bound.h"
#include "cortado/tune/tune_on_machine.h"

namespace cortado {
namespace {

bool any_parameter(const Network& network, const std::vector<NodeIndex>& nodes,
                   const std::function<bool(const Network::Parameter&)>& is) {
  return std::ranges::any_of(nodes, [&](NodeIndex node) {
    return std::ranges::any_of(network.nodes()[node].parameters,
                               [&](ParameterIndex p) { return is(network.parameters()[p]); });
  });
}

// Every configuration of a group, with its gradients summed in each way that makes a difference. `own`: as
// the group's layers are cut now.
std::vector<std::vector<LayerStrategy>> ways_of(const Network& network, const plan::Group& group, int devices,
                                                std::string_view dimensions,
                                                const std::vector<LayerStrategy>& own) {
  const bool sums = any_parameter(network, group.nodes, [](const auto& p) { return p.wants_gradient; });
  std::vector<std::vector<LayerStrategy>> ways{own};
  for (const ParallelConfig& config : plan::candidates_of(network, group, devices, dimensions)) {
    std::vector<LayerStrategy> way = own;
    for (LayerStrategy& layer : way) layer.config = plan::following(config);
    way[0].config = config;
    for (GradientSync sync : {GradientSync::allreduce, GradientSync::owner}) {
      if (sync == GradientSync::owner && !(sums && config.degrees.replicas() > 1)) continue;
      for (LayerStrategy& layer : way) layer.sync = sync;
      if (way != own) ways.push_back(way);
    }
  }
  return ways;
}

std::vector<plan::ChangedLayer> changes(const Network& network, const Strategy& before,
                                        const Strategy& after) {
  std::vector<plan::ChangedLayer> layers;
  for (const auto& [layer, old, tuned] : tuned_layers(network, before, after))
    layers.push_back({layer, old, tuned});
  return layers;
}

void choose_cuts(plan::Plan& plan, const plan::PlanRequest& request, const SimulatedMachine& machine) {
  if (machine.graph.devices() < 2 || !machine.graph.weights().empty()) return;
  const auto choices =
      cut_choices(request.network, machine.graph.devices(), request.dimensions, plan.strategy);
  const std::optional<FoundCuts> found =
      search_cuts_on(machine, request.network, plan.strategy, choices, request.history, plan.memory_limit);
  if (!found) return;
  plan::Judged& judged = *plan.judged;
  judged.strategies += found->tried - 1;  // the plan itself was simulated before
  judged.cuts_bound = found->lower_bound;
  if (found->before.count < (1 + least_gain) * found->seconds.count) return;
  judged.before_cuts = found->before;
  judged.cuts = changes(request.network, plan.strategy, found->strategy);
  plan.strategy = found->strategy;
  judged.seconds = found->seconds;
}

// Puts branches of a plan that a simulation chose side by side, where that gains enough.
void place_side_by_side(plan::Plan& plan, const plan::PlanRequest& request, const SimulatedMachine& machine) {
  const Network& network = request.network;
  const PlacedStrategy found =
      place_on(machine, network, plan.strategy, request.history, 1, plan.memory_limit);
  plan::SideBySide& result = plan.side_by_side.emplace();
  result.before = found.before;
  result.of_sets = found.all_sets;
  result.strategies = found.tried;
  plan.judged->lower_bound = least_iteration(network, machine);
  plan.judged->bounds_all = true;
  plan.judged->strategies += found.tried - 1;  // the plan itself was simulated before
  if (found.before.count < worth_changing * found.seconds.count) return;
  result.layers = changes(network, plan.strategy, found.strategy);
  result.sets = static_cast<int>(found.sets.size());
  plan.strategy = found.strategy;
  plan.judged->seconds = found.seconds;
}

}  // namespace

std::vector<CutChoice> cut_choices(const Network& network, int devices, std::string_view dimensions,
                                   const Strategy& strategy) {
  const RuleFinder rules(strategy);
  std::vector<CutChoice> choices;
  for (const plan::Group& group : plan::groups_of(network)) {
    if (any_parameter(network, group.nodes, [](const auto& p) { return p.users.size() > 1; })) continue;
    std::vector<LayerStrategy> own;
    for (NodeIndex node : group.nodes) own.push_back(*rules.find(network.nodes()[node]));
    choices.push_back({group.nodes, ways_of(network, group, devices, dimensions, own)});
  }
  return choices;
}

void refine_by_simulation(plan::Plan& plan, const plan::PlanRequest& request,
                          const SimulatedMachine& machine) {
  choose_cuts(plan, request, machine);
  place_side_by_side(plan, request, machine);
}

}  // namespace cortado
