#include "cortado/plan/plan_graph.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"

namespace cortado::plan {
namespace {

// Gives equal values the same number.
template <typename Value>
class Numbering {
 public:
  int number(const Value& value) {
    auto found = std::ranges::find(values_, value);
    if (found == values_.end()) found = values_.insert(values_.end(), value);
    return static_cast<int>(found - values_.begin());
  }

 private:
  std::vector<Value> values_;
};

std::vector<GridLayout> column(const std::vector<Priced>& candidates, std::vector<GridLayout> Priced::*member,
                               size_t index) {
  std::vector<GridLayout> layouts;
  for (const Priced& candidate : candidates) layouts.push_back((candidate.*member)[index]);
  return layouts;
}

class GraphMaker {
 public:
  GraphMaker(const Network& network, const PricingOptions& options, CostModel& costs,
             std::vector<int> node_of_device)
      : network_(network), options_(options), costs_(costs) {
    graph_.node_of_device = std::move(node_of_device);
  }

  PlanGraph run() {
    graph_.groups = groups_of(network_);
    for (std::string_view name : built_in_strategies())
      baselines_.push_back(built_in_strategy(name, network_, options_.devices));
    for (const Group& group : graph_.groups) add_vertex(group);
    for (size_t v = 0; v < graph_.groups.size(); ++v) add_edges(static_cast<int>(v));
    forbid_unequal_sharers();
    return std::move(graph_);
  }

 private:
  void add_vertex(const Group& group) {
    const auto& first = network_.nodes()[group.nodes[0]];
    std::vector<ParallelConfig> configs = candidates_of(network_, group, options_.devices);
    for (const Strategy& baseline : baselines_) {
      const ParallelConfig& config = baseline.find(first.name)->config;
      if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
    }
    std::vector<Priced> priced;
    std::vector<double> seconds;
    std::vector<Bytes> bytes;
    for (const ParallelConfig& config : configs) {
      priced.push_back(price(network_, group, config, options_, costs_));
      seconds.push_back(priced.back().total().count);
      bytes.push_back(priced.back().memory);
    }
    const int vertex = graph_.costs.add_vertex(first.name, std::move(seconds), std::move(bytes));
    for (int node : group.nodes) vertex_of_[node] = vertex;
    for (size_t i = 0; i < first.inputs.size(); ++i)
      reads_[{vertex, i}] = layouts_.number(column(priced, &Priced::reads, i));
    const size_t outputs = network_.nodes()[group.nodes.back()].outputs.size();
    for (size_t k = 0; k < outputs; ++k)
      owns_[{vertex, k}] = layouts_.number(column(priced, &Priced::owns, k));
    graph_.candidates.push_back(std::move(priced));
  }

  void add_edges(int to) {
    const auto& first = network_.nodes()[graph_.groups[static_cast<size_t>(to)].nodes[0]];
    for (size_t i = 0; i < first.inputs.size(); ++i) {
      const auto& tensor = network_.tensors()[first.inputs[i]];
      const auto from = vertex_of_.find(tensor.producer);
      if (from == vertex_of_.end()) continue;  // every rank reads its own samples
      const PlanGraph::Edge edge{.from = from->second,
                                 .to = to,
                                 .output = static_cast<size_t>(tensor.producer_output),
                                 .input = i,
                                 .backward = first.propagate_down[i]};
      graph_.costs.add_edge(edge.from, edge.to, edge_costs(edge));
      graph_.edges.push_back(edge);
    }
  }

  // Nets repeat themselves: edges between equal layouts share their costs.
  Costs edge_costs(const PlanGraph::Edge& edge) {
    const std::tuple key{owns_.at({edge.from, edge.output}), reads_.at({edge.to, edge.input}), edge.backward};
    Costs& known = known_[key];
    if (!known) known = std::make_shared<const std::vector<double>>(exchange_table(edge));
    return known;
  }

  std::vector<double> exchange_table(const PlanGraph::Edge& edge) {
    const auto& from = graph_.candidates[static_cast<size_t>(edge.from)];
    const auto& to = graph_.candidates[static_cast<size_t>(edge.to)];
    std::vector<double> table(from.size() * to.size());
    parallel_for(static_cast<int64_t>(from.size()), [&](int64_t a) {
      for (size_t b = 0; b < to.size(); ++b) {
        const ExchangeVolume volume = exchange_volume(from[static_cast<size_t>(a)].owns[edge.output],
                                                      to[b].reads[edge.input], graph_.node_of_device);
        const double once = costs_.exchange(volume).count;
        table[static_cast<size_t>(a) * to.size() + b] = edge.backward ? 2 * once : once;
      }
    });
    return table;
  }

  // Layers that share a parameter must be cut alike.
  void forbid_unequal_sharers() {
    for (const auto& parameter : network_.parameters()) {
      for (size_t u = 1; u < parameter.users.size(); ++u)
        forbid_unequal(vertex_of_.at(parameter.users[0]), vertex_of_.at(parameter.users[u]));
    }
  }

  void forbid_unequal(int a, int b) {
    if (a == b) return;
    const auto& ours = graph_.candidates[static_cast<size_t>(a)];
    const auto& theirs = graph_.candidates[static_cast<size_t>(b)];
    std::vector<double> table;
    for (const Priced& one : ours) {
      for (const Priced& other : theirs)
        table.push_back(
            one.strategy.config == other.strategy.config ? 0 : std::numeric_limits<double>::infinity());
    }
    graph_.costs.add_edge(a, b, std::move(table));
  }

  const Network& network_;
  const PricingOptions& options_;
  CostModel& costs_;
  PlanGraph graph_;
  std::vector<Strategy> baselines_;
  std::map<int, int> vertex_of_;  // node to vertex
  Numbering<std::vector<GridLayout>> layouts_;
  std::map<std::pair<int, size_t>, int> reads_, owns_;  // numbers of vertices' layouts
  std::map<std::tuple<int, int, bool>, Costs> known_;
};

}  // namespace

ExchangeVolume PlanGraph::volume(const Edge& edge, const std::vector<int>& assignment) const {
  const auto& chosen = [&](int vertex) -> const Priced& {
    return candidates[static_cast<size_t>(vertex)]
                     [static_cast<size_t>(assignment[static_cast<size_t>(vertex)])];
  };
  return exchange_volume(chosen(edge.from).owns[edge.output], chosen(edge.to).reads[edge.input],
                         node_of_device);
}

int PlanGraph::candidate(int vertex, const ParallelConfig& config) const {
  const auto& list = candidates[static_cast<size_t>(vertex)];
  const auto found = std::ranges::find_if(
      list, [&](const Priced& candidate) { return candidate.strategy.config == config; });
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

std::vector<int> PlanGraph::assignment(const Network& network, const Strategy& strategy) const {
  std::vector<int> assignment;
  for (size_t v = 0; v < groups.size(); ++v) {
    const auto& first = network.nodes()[groups[v].nodes[0]];
    assignment.push_back(candidate(static_cast<int>(v), strategy.find(first.name)->config));
    ensure(assignment.back() >= 0, "the built-in strategies' configurations are candidates");
  }
  return assignment;
}

PlanGraph make_plan_graph(const Network& network, const PricingOptions& options, CostModel& costs,
                          std::vector<int> node_of_device) {
  return GraphMaker(network, options, costs, std::move(node_of_device)).run();
}

}  // namespace cortado::plan
