#pragma once

#include <span>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/cost/cost_model.h"
#include "cortado/machine/device_graph.h"
#include "cortado/program/equal_blocks.h"
#include "cortado/sim/flows.h"

namespace cortado {

// The parts of a machine that transfers share. A device has a port in each direction, for its node and for
// other nodes, at its links' rate. The devices of a node share its network interface, in each direction, its
// bus, and the way to servers in its memory.
//
// Of equal blocks of devices, each of whole nodes, only the ports of the ranks that differ are told; a
// message between blocks stands for those of all the blocks.
class Ports {
 public:
  explicit Ports(const DeviceGraph& machine) : Ports(machine, {machine.devices(), 1}) {}
  Ports(const DeviceGraph& machine, EqualBlocks blocks) : machine_(machine), blocks_(blocks) {}
  int count() const { return 4 * machine_.devices() + 4 * machine_.nodes(); }

  // How long a message between nodes, or one after the other of a collective, waits in all where sums that
  // are needed later are on its way.
  Seconds wait(int from, int to) const;
  Seconds wait(std::span<const int> group) const;

  // What a message takes of the ports while it is under way, and how long it is under way when it is alone.
  std::vector<Flows::Load> message(int from, int to) const;
  Seconds message_seconds(int from, int to, Bytes bytes) const;

  // What a collective takes of the ports: it goes round a ring of the group and ends after `alone`, and bytes
  // flow in a share of that time. What goes to or from servers keeps them busy, so that it does so alone.
  std::vector<Flows::Load> collective(Collective kind, std::span<const int> group, Bytes bytes,
                                      Seconds alone) const;

  // For how many a message stands at `end`, one of its two: one between blocks for those of all other blocks,
  // which all come to the first one.
  int stands_for(int from, int to, int end) const;
  // Seconds of computing that a message costs either end, and a collective its member `rank`.
  Seconds message_overhead(int from, int to, Bytes bytes) const;
  Seconds collective_overhead(Collective kind, std::span<const int> group, Bytes bytes, int rank) const;

 private:
  enum End { out, in };
  int device_port(int device, bool across, End end) const { return 4 * device + 2 * across + end; }
  int node_port(int node, int which) const { return 4 * machine_.devices() + 4 * node + which; }
  Bandwidth rate(int from, int to) const;
  // A share of the link's rate, on every port from one device to the other: `out` at those of the one that
  // sends, `in` at the other's.
  struct Shares {
    double out, in;
  };
  void add(std::vector<Flows::Load>& loads, int from, int to, Shares shares) const;

  const DeviceGraph& machine_;
  const EqualBlocks blocks_;
};

}  // namespace cortado
