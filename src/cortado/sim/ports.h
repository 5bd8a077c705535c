#pragma once

#include <span>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/cost/cost_model.h"
#include "cortado/machine/device_graph.h"
#include "cortado/sim/flows.h"

namespace cortado {

// What of a machine transfers share: each device sends and receives at its links' rate, within its node and
// to other nodes apart; the devices of a node share its network interface, in each direction, and its bus.
class Ports {
 public:
  explicit Ports(const DeviceGraph& machine) : machine_(machine) {}
  int count() const { return 4 * machine_.devices() + 3 * machine_.nodes(); }

  // What a message takes of them while it is under way, and for how long it is when it is alone.
  std::vector<Flows::Load> message(int from, int to) const;
  Seconds message_seconds(int from, int to, Bytes bytes) const;

  // What a collective takes that goes round a ring of the group and is over after so many seconds: the share
  // of them in which bytes flow.
  std::vector<Flows::Load> collective(Collective kind, std::span<const int> group, Bytes bytes,
                                      Seconds alone) const;

  // Seconds of computing that they take of either end of the message, and of member `rank` of the collective.
  Seconds message_overhead(int from, int to, Bytes bytes) const;
  Seconds collective_overhead(Collective kind, std::span<const int> group, Bytes bytes, int rank) const;

 private:
  enum End { out, in };
  int device_port(int device, bool across, End end) const { return 4 * device + 2 * across + end; }
  int node_port(int node, int which) const { return 4 * machine_.devices() + 3 * node + which; }
  Bandwidth rate(int from, int to) const;
  // `share` of the link's rate, on every port from one device to the other.
  void add(std::vector<Flows::Load>& loads, int from, int to, double share) const;

  const DeviceGraph& machine_;
};

}  // namespace cortado
