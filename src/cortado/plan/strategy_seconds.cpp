#include "cortado/plan/strategy_seconds.h"

#include <map>

#include "cortado/cost/exchange_volume.h"
#include "cortado/plan/groups.h"

namespace cortado::plan {

Seconds strategy_seconds(const Network& network, const Strategy& strategy, const PricingOptions& options,
                         CostModel& costs, const std::vector<int>& node_of_device) {
  const RuleFinder rules(strategy);
  std::map<NodeIndex, Priced> known;  // by the group's last node
  Seconds seconds;
  for (const Group& group : groups_of(network)) {
    const Network::Node& first = network.nodes()[group.nodes[0]];
    Priced priced = price(network, group, *rules.find(first), options, costs);
    seconds += priced.total();
    for (size_t i = 0; i < first.inputs.size(); ++i) {
      const Network::Tensor& tensor = network.tensors()[first.inputs[i]];
      const auto from = known.find(tensor.producer);
      if (from == known.end()) continue;  // every rank reads its own samples
      const ExchangeVolume volume = exchange_volume(from->second.owns[tensor.producer_output],
                                                    priced.reads[i], node_of_device, tensor.type);
      const double times = first.propagate_down[i] ? 2 : 1;
      seconds += {times * costs.exchange(volume).count};
    }
    known.emplace(group.nodes.back(), std::move(priced));
  }
  return seconds;
}

}  // namespace cortado::plan
