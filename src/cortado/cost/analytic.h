#pragma once

#include <memory>

#include "cortado/cost/cost_model.h"
#include "cortado/layers/precision.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// Costs from a machine file alone: tasks by the roofline (the larger of FLOPs over rate and bytes over memory
// bandwidth, each times the share of it that such tasks reach), messages by latency and bandwidth,
// collectives as rings whose rounds wait for the slowest link. Devices of a node share its network
// interface and, where it has one, its bus. What goes to or from servers passes the memory of the device's
// own host, then, for the shares of other hosts, the network.
class AnalyticCosts : public CostModel {
 public:
  explicit AnalyticCosts(DeviceGraph machine);

  bool concurrent() const override { return true; }
  TaskTime task(const Task& task, int device) override;
  Seconds update(Bytes parameters, int device) override;
  Seconds exchange(const ExchangeVolume& volume) override;
  Seconds collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) override;

 private:
  struct Ring;
  struct KnownRings;
  std::vector<Ring> make_rings(std::span<const std::vector<int>> groups) const;
  std::vector<Ring> rings_of(std::span<const std::vector<int>> groups) const;
  Seconds served(std::span<const std::vector<int>> groups, Bytes bytes) const;

  DeviceGraph machine_;
  std::shared_ptr<KnownRings> known_;  // by now
  Link inside_, across_;               // the slowest within a node, and between nodes
  Bandwidth nic_, bus_;                // the slowest; 0: there is none
};

// What a task is to a machine file: its first layer decides.
TaskKind kind_of(const Task& task);

// The type of the numbers that a task with products multiplies: bf16 where its tensors are, unless its layer
// is in f32.
ElementType product_type(const Task& task);

// What a user of that precision should know of the machine's rates, a line each.
std::vector<std::string> rate_warnings(const DeviceGraph& machine, Precision precision);

// FLOPs of the forward pass of a task's own share.
Flops forward_flops(const Task& task);

}  // namespace cortado
