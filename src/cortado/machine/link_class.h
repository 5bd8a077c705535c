#pragma once

#include <string>
#include <vector>

#include "cortado/machine/device_graph.h"

namespace cortado {

// Links of a machine that are bought together. `network`: between nodes, with their network interfaces.
// `group-2`: within nodes, those that join blocks of 2 devices (NodeLink::group). `bus`: what all messages
// within a node share. `node`: within nodes, where a machine's file has a link for every pair.
struct LinkClass {
  std::string name;
  Bandwidth bandwidth;  // of one link; of the slowest where they differ
  bool operator==(const LinkClass&) const = default;
};

// The classes of which devices of the machine use links, the network first, then the outermost within nodes.
std::vector<LinkClass> link_classes(const DeviceGraph& machine);

// The class with the lowest bandwidth. Throws UserError where the machine has one device.
LinkClass slowest_links(const DeviceGraph& machine);

// The class of that name. Throws UserError that names `where` and the names that there are.
LinkClass find_links(const DeviceGraph& machine, const std::string& name, const std::string& where);

// The machine with all links of a class `times` as fast: their bandwidths, not their latencies. The network's
// interfaces follow the network.
DeviceGraph with_faster_links(const DeviceGraph& machine, const std::string& name, double times);

}  // namespace cortado
