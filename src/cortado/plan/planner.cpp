#include "cortado/plan/planner.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "cortado/plan/measuring.h"
#include "cortado/plan/plan_graph.h"

namespace cortado::plan {
namespace {

class PlanMaker {
 public:
  PlanMaker(const Network& network, const PricingOptions& options, PlanGraph graph)
      : network_(network), options_(options), graph_(std::move(graph)) {}

  Plan run() {
    const Optimum optimum = search(graph_.costs);
    Plan plan{.strategy = strategy_of(optimum.assignment), .seconds = {optimum.seconds}};
    plan.proven = optimum.proven;
    plan.search = optimum.statistics;
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      plan.groups.push_back(planned(v, optimum.assignment));
      plan.memory += plan.groups.back().memory;
      plan.candidates += static_cast<int>(graph_.candidates[v].size());
    }
    add_transfers(plan, optimum.assignment);
    for (const PlannedGroup& group : plan.groups) plan.bytes += group.bytes;
    add_runners_up(plan, optimum);
    for (std::string_view name : built_in_strategies()) {
      const Strategy strategy = built_in_strategy(name, network_, options_.devices);
      plan.baselines.emplace_back(name, Seconds{graph_.costs.seconds(graph_.assignment(network_, strategy))});
    }
    return plan;
  }

 private:
  const Priced& chosen(size_t vertex, const std::vector<int>& assignment) const {
    return graph_.candidates[vertex][static_cast<size_t>(assignment[vertex])];
  }

  PlannedGroup planned(size_t vertex, const std::vector<int>& assignment) const {
    const Priced& priced = chosen(vertex, assignment);
    PlannedGroup group{.nodes = graph_.groups[vertex].nodes, .strategy = priced.strategy};
    group.compute = priced.compute;
    group.sums = priced.sums;
    group.sync = priced.sync;
    group.update = priced.update;
    group.bytes = priced.sums_bytes + priced.sync_bytes;
    group.memory = priced.memory;
    return group;
  }

  void add_transfers(Plan& plan, const std::vector<int>& assignment) const {
    for (size_t e = 0; e < graph_.edges.size(); ++e) {
      const PlanGraph::Edge& edge = graph_.edges[e];
      PlannedGroup& group = plan.groups[static_cast<size_t>(edge.to)];
      const auto& costs = graph_.costs.edges()[e];
      const size_t row = static_cast<size_t>(assignment[static_cast<size_t>(edge.from)]);
      const size_t column = static_cast<size_t>(assignment[static_cast<size_t>(edge.to)]);
      group.transfer +=
          {(*costs.seconds)[row * graph_.candidates[static_cast<size_t>(edge.to)].size() + column]};
      group.bytes += graph_.volume(edge, assignment).total * (edge.backward ? 2 : 1);
    }
  }

  void add_runners_up(Plan& plan, const Optimum& optimum) const {
    const auto marginals = min_marginals(graph_.costs);
    for (size_t v = 0; v < plan.groups.size(); ++v) {
      double second = std::numeric_limits<double>::infinity();
      for (size_t c = 0; c < marginals[v].size(); ++c) {
        if (static_cast<int>(c) == optimum.assignment[v] || marginals[v][c] >= second) continue;
        second = marginals[v][c];
        plan.groups[v].runner_up = graph_.candidates[v][c].strategy.config;
        plan.groups[v].runner_up_bound = graph_.candidates[v][c].compute.bound;
      }
      plan.groups[v].runner_up_costs = {second - optimum.seconds};
    }
  }

  Strategy strategy_of(const std::vector<int>& assignment) const {
    Strategy strategy{.net = network_.name(), .ranks = options_.devices, .rules = {}};
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      LayerStrategy layer = chosen(v, assignment).strategy;
      for (int node : graph_.groups[v].nodes) {
        strategy.rules.push_back({network_.nodes()[node].name, layer});
        layer.config = following(layer.config);
      }
    }
    return strategy;
  }

  const Network& network_;
  const PricingOptions& options_;
  PlanGraph graph_;
};

// The built-in strategies and an optimum by measured costs, where costs can be measured.
void measure(const Network& network, const PricingOptions& options, CostModel& costs, PlanGraph& graph) {
  const bool bounds = std::ranges::any_of(graph.candidates, [](const std::vector<Priced>& candidates) {
    return std::ranges::any_of(candidates, [](const Priced& priced) { return priced.compute.bound; });
  });
  if (!bounds) return;
  std::vector<std::vector<int>> baselines;
  for (std::string_view name : built_in_strategies())
    baselines.push_back(graph.assignment(network, built_in_strategy(name, network, options.devices)));
  measure_optimum(network, options, costs, graph, baselines);
}

}  // namespace

Plan make_plan(const Network& network, const PricingOptions& options, CostModel& costs,
               const std::vector<int>& node_of_device) {
  const auto begin = std::chrono::steady_clock::now();
  PlanGraph graph = make_plan_graph(network, options, costs, node_of_device);
  measure(network, options, costs, graph);
  const std::chrono::duration<double> pricing = std::chrono::steady_clock::now() - begin;
  Plan plan = PlanMaker(network, options, std::move(graph)).run();
  plan.pricing = {pricing.count()};
  return plan;
}

}  // namespace cortado::plan
