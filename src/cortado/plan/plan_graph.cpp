#include "cortado/plan/plan_graph.h"

#include <algorithm>
#include <tuple>

#include "cortado/base/error.h"

namespace cortado::plan {

ExchangeVolume PlanGraph::volume(const Edge& edge, const std::vector<int>& assignment) const {
  const auto& chosen = [&](int vertex) -> const Priced& {
    return candidates[static_cast<size_t>(vertex)]
                     [static_cast<size_t>(assignment[static_cast<size_t>(vertex)])];
  };
  const GridLayout &owned = chosen(edge.from).owns[edge.output], &needed = chosen(edge.to).reads[edge.input];
  const auto key = std::tuple(owned.identity(), needed.identity(), edge.type);
  auto known = known_.find(key);
  if (known == known_.end()) {
    const ExchangeVolume volume = exchange_volume(owned, needed, node_of_device, edge.type);
    known = known_.emplace(key, KnownVolume{owned, needed, volume}).first;
  }
  return known->second.volume;
}

int PlanGraph::candidate(int vertex, const LayerStrategy& strategy) const {
  const auto replicates = [](const LayerStrategy& one) { return facts_of(one.sync).replicates; };
  const auto& list = candidates[static_cast<size_t>(vertex)];
  const auto found = std::ranges::find_if(list, [&](const Priced& candidate) {
    return candidate.strategy.config == strategy.config &&
           replicates(candidate.strategy) == replicates(strategy);
  });
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

std::vector<int> PlanGraph::assignment(const Network& network, const Strategy& strategy) const {
  std::vector<int> assignment;
  const RuleFinder rules(strategy);
  for (size_t v = 0; v < groups.size(); ++v) {
    const auto& first = network.nodes()[groups[v].nodes[0]];
    assignment.push_back(candidate(static_cast<int>(v), *rules.find(first)));
    ensure(assignment.back() >= 0, "the built-in strategies' layers are candidates");
  }
  return assignment;
}

std::vector<int> PlanGraph::assignment(const Network& network, std::string_view name) const {
  const std::vector<std::string_view> names = built_in_strategies();
  const auto known = std::ranges::find(names, name);
  ensure(known != names.end(), "there is no built-in strategy of that name");
  return assignment(network, built_in[static_cast<size_t>(known - names.begin())]);
}

Bytes PlanGraph::moved(const Edge& edge, const std::vector<int>& assignment) const {
  return {volume(edge, assignment).total.count * (edge.backward ? 2 : 1)};
}

Bytes PlanGraph::sent_bytes(const std::vector<int>& assignment) const {
  Bytes bytes;
  for (size_t v = 0; v < groups.size(); ++v) {
    const Priced& priced = candidates[v][static_cast<size_t>(assignment[v])];
    bytes += priced.sums_bytes + priced.sync_bytes;
  }
  for (const Edge& edge : edges) bytes += moved(edge, assignment);
  return bytes;
}

}  // namespace cortado::plan
