#include "cortado/machine/device_graph.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "cortado/base/error.h"

namespace cortado {

DeviceGraph::DeviceGraph(Machine machine) : machine_(std::move(machine)) {
  for (int n = 0; n < nodes(); ++n) {
    const int count = static_cast<int>(node(n).devices.size());
    for (int position = 0; position < count; ++position) places_.push_back({n, position});
  }
  ensure(!places_.empty(), "a machine has a device");
  ensure(machine_.pairs.empty() || machine_.pairs.size() == places_.size() * places_.size(),
         "a machine has a link for each pair of devices");
  for (size_t pair = 0; pair < machine_.pairs.size(); pair += places_.size() + 1) machine_.pairs[pair] = {};
}

const Device& DeviceGraph::device(int device) const {
  const Place& place = places_[static_cast<size_t>(device)];
  return node(place.node).devices[static_cast<size_t>(place.position)];
}

std::vector<int> DeviceGraph::node_of_devices() const {
  std::vector<int> nodes;
  for (const Place& place : places_) nodes.push_back(place.node);
  return nodes;
}

Bytes DeviceGraph::least_memory() const {
  Bytes least = device(0).memory;
  for (int i = 1; i < devices(); ++i) least = std::min(least, device(i).memory);
  return least;
}

double DeviceGraph::price_per_hour() const {
  double price = 0;
  for (const Node& node : machine_.nodes) {
    price += node.price_per_hour;
    for (const Device& device : node.devices) price += device.price_per_hour;
  }
  return price;
}

std::string DeviceGraph::instruction_set() const {
  const std::string& first = device(0).instruction_set;
  for (int other = 1; other < devices(); ++other)
    if (device(other).instruction_set != first) return "";
  return first;
}

std::vector<double> DeviceGraph::weights() const {
  constexpr double about_equal = 1.1, giga = 1e9;
  std::vector<double> weights;
  for (int i = 0; i < devices(); ++i) {
    const Device& one = device(i);
    weights.push_back(one.weight > 0 ? one.weight : one.peak.per_second / giga);
  }
  const auto [least, most] = std::ranges::minmax(weights);
  if (most <= about_equal * least) weights.clear();
  return weights;
}

Link DeviceGraph::link(int from, int to) const {
  if (from == to) return {{0}, {std::numeric_limits<double>::infinity()}};
  if (!machine_.pairs.empty()) {
    return machine_.pairs[static_cast<size_t>(from) * places_.size() + static_cast<size_t>(to)];
  }
  const Place &sender = places_[static_cast<size_t>(from)], &receiver = places_[static_cast<size_t>(to)];
  if (sender.node != receiver.node) {
    const Bandwidth narrowest = std::min({machine_.network.bandwidth, nic(sender.node), nic(receiver.node)});
    return {machine_.network.latency, narrowest};
  }
  for (const NodeLink& level : node(sender.node).links) {
    if (sender.position / level.group == receiver.position / level.group) return level.link;
  }
  throw InternalError("a node's last link joins all of its devices");
}

DeviceGraph DeviceGraph::first(int count) const {
  if (count < 1 || count > devices()) {
    throw UserError(fmt::format("machine '{}' has {} device{}, {} cannot be taken; give 1 to {}",
                                machine_.name, devices(), devices() == 1 ? "" : "s", count, devices()));
  }
  Machine part = machine_;
  const int last = node_of(count - 1);
  part.nodes.resize(static_cast<size_t>(last) + 1);
  part.nodes.back().devices.resize(static_cast<size_t>(places_[static_cast<size_t>(count) - 1].position) + 1);
  if (!part.pairs.empty()) {
    part.pairs.clear();
    for (int from = 0; from < count; ++from) {
      const auto row = machine_.pairs.begin() + static_cast<std::ptrdiff_t>(from) * devices();
      part.pairs.insert(part.pairs.end(), row, row + count);
    }
  }
  std::erase_if(part.calibration.allreduce, [&](const CollectiveTime& time) { return time.devices > count; });
  return DeviceGraph(std::move(part));
}

}  // namespace cortado
