#include "cortado/machine/link_class.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>

#include "cortado/base/error.h"

namespace cortado {
namespace {

std::string name_of_group(int group) { return fmt::format("group-{}", group); }

// Calls visit(name, bandwidth) for every link of a machine, which may change it.
template <typename MachineType, typename Visit>
void each_link(MachineType& machine, const DeviceGraph& graph, Visit&& visit) {
  if (graph.nodes() > 1 && machine.pairs.empty()) visit("network", machine.network.bandwidth);
  for (auto& node : machine.nodes) {
    for (auto& level : node.links) visit(name_of_group(level.group), level.link.bandwidth);
    if (node.bus.bytes_per_second > 0 && node.devices.size() > 1) visit("bus", node.bus);
  }
  const auto devices = static_cast<size_t>(graph.devices());
  for (size_t pair = 0; pair < machine.pairs.size(); ++pair) {
    const int from = static_cast<int>(pair / devices), to = static_cast<int>(pair % devices);
    if (from == to) continue;
    visit(graph.crosses_nodes(from, to) ? "network" : "node", machine.pairs[pair].bandwidth);
  }
}

// Whether two devices of a node have no nearer link than this level.
bool joins(const Node& node, size_t level) {
  const int inner = level == 0 ? 1 : node.links[level - 1].group;
  return static_cast<int>(node.devices.size()) > inner;
}

}  // namespace

std::vector<LinkClass> link_classes(const DeviceGraph& machine) {
  std::vector<LinkClass> classes;
  const auto see = [&](const std::string& name, Bandwidth bandwidth) {
    const auto known = std::ranges::find(classes, name, &LinkClass::name);
    if (known == classes.end()) {
      classes.push_back({name, bandwidth});
    } else {
      known->bandwidth = std::min(known->bandwidth, bandwidth);
    }
  };
  std::map<int, bool, std::greater<>> used;  // groups, the largest first
  for (const Node& node : machine.machine().nodes)
    for (size_t level = 0; level < node.links.size(); ++level)
      used[node.links[level].group] |= joins(node, level);
  std::vector<std::string> order{"network"};
  for (const auto& [group, joined] : used)
    if (joined) order.push_back(name_of_group(group));
  order.insert(order.end(), {"node", "bus"});
  each_link(machine.machine(), machine, see);
  std::erase_if(classes,
                [&](const LinkClass& one) { return std::ranges::find(order, one.name) == order.end(); });
  std::ranges::sort(classes, {}, [&](const LinkClass& one) { return std::ranges::find(order, one.name); });
  return classes;
}

LinkClass slowest_links(const DeviceGraph& machine) {
  const std::vector<LinkClass> classes = link_classes(machine);
  if (classes.empty())
    throw UserError(fmt::format("machine '{}' has one device and no links; give a larger machine",
                                machine.machine().name));
  return *std::ranges::min_element(classes, {}, &LinkClass::bandwidth);
}

LinkClass find_links(const DeviceGraph& machine, const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (const LinkClass& one : link_classes(machine)) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  throw UserError(fmt::format("{}: machine '{}' has no links '{}'; give one of {}", where,
                              machine.machine().name, name, fmt::join(names, ", ")));
}

DeviceGraph with_faster_links(const DeviceGraph& machine, const std::string& name, double times) {
  Machine changed = machine.machine();
  const auto raise = [&](Bandwidth& bandwidth) { bandwidth.bytes_per_second *= times; };
  each_link(changed, machine, [&](const std::string& of, Bandwidth& bandwidth) {
    if (of == name) raise(bandwidth);
  });
  if (name == "network")
    for (Node& node : changed.nodes) raise(node.nic);
  return DeviceGraph(std::move(changed));
}

}  // namespace cortado
