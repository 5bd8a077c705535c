#include "cortado/tune/transposed_grids.h"

#include <utility>

namespace cortado {
namespace {

using Dimension = int Degrees::*;

// Degrees in the order of devices, the last running fastest.
constexpr Dimension order[] = {&Degrees::n, &Degrees::d, &Degrees::h, &Degrees::w, &Degrees::c, &Degrees::r};

// The devices in the order in which `one` and `other` have changed places.
std::vector<int> transposed(const ParallelConfig& config, Dimension one, Dimension other) {
  const auto stride_of = [&](Dimension which) {
    int stride = 1;
    for (size_t i = std::size(order); order[--i] != which;) stride *= config.degrees.*order[i];
    return stride;
  };
  // The strides of a grid in which the two dimensions, with their extents, have changed places.
  ParallelConfig swapped = config;
  std::swap(swapped.degrees.*one, swapped.degrees.*other);
  const auto swapped_stride_of = [&](Dimension which) {
    const Dimension place = which == one ? other : which == other ? one : which;
    int stride = 1;
    for (size_t i = std::size(order); order[--i] != place;) stride *= swapped.degrees.*order[i];
    return stride;
  };
  std::vector<int> devices;
  for (int index = 0; index < config.degrees.product(); ++index) {
    int from = 0;
    for (Dimension which : order)
      from += index / stride_of(which) % (config.degrees.*which) * swapped_stride_of(which);
    devices.push_back(config.devices[static_cast<size_t>(from)]);
  }
  return devices;
}

}  // namespace

std::vector<Strategy> transposed_grids(const Strategy& strategy, const Network& network) {
  constexpr std::pair<Dimension, Dimension> pairs[] = {
      {&Degrees::c, &Degrees::r}, {&Degrees::n, &Degrees::c}, {&Degrees::n, &Degrees::r}};
  std::vector<Strategy> all;
  for (size_t rule = 0; rule < strategy.rules.size(); ++rule) {
    const ParallelConfig& config = strategy.rules[rule].layer.config;
    const auto node = [&](size_t i) -> const Network::Node& {
      return network.nodes()[network.node(strategy.rules[i].pattern)];
    };
    if (node(rule).layer->products() != Products::inner_product || !config.weights.empty()) continue;
    for (const auto& [one, other] : pairs) {
      if (config.degrees.*one < 2 || config.degrees.*other < 2) continue;
      Strategy changed = strategy;
      const std::vector<int> devices = transposed(config, one, other);
      for (size_t i = rule; i < strategy.rules.size(); ++i) {
        if (i > rule &&
            (!node(i).parameters.empty() || strategy.rules[i].layer.config.devices != config.devices))
          break;
        changed.rules[i].layer.config.devices = devices;
      }
      all.push_back(std::move(changed));
    }
  }
  return all;
}

}  // namespace cortado
