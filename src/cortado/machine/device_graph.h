#pragma once

#include <array>
#include <string>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/base/units.h"

namespace cortado {

// What joins two devices, in one direction: `bytes` take latency + bytes / bandwidth. Both directions may be
// used at a time without slowing each other.
struct Link {
  Seconds latency;
  Bandwidth bandwidth;
  Seconds time(Bytes bytes) const { return latency + bytes / bandwidth; }
  bool operator==(const Link&) const = default;
};

// What runs one rank: a GPU, or a rank's share of a node's processors.
struct Device {
  std::string name;  // "V100"; may be empty
  FlopRate peak;     // of float32: upper bound on the operations that any kernel carries out
  Bandwidth memory_bandwidth;
  Bytes memory;
  Seconds task_overhead;  // what a task takes beside its work: the launch of a kernel, the start of threads
  std::string instruction_set;  // for which kernels are compiled there, "avx512f"; empty: not known
  double weight = 0;     // its part of a layer that it shares, relative to others'; 0: its peak in GFLOP/s
  FlopRate bf16_peak{};  // of products of bfloat16 numbers; 0: not known
  double price_per_hour = 0;  // in the currency of the machine's file; 0: not known
  // Of products of numbers of that type; that of float32 where it is not known.
  FlopRate peak_of(ElementType type) const {
    return type == ElementType::bf16 && bf16_peak.per_second > 0 ? bf16_peak : peak;
  }
  bool operator==(const Device&) const = default;
};

// Joins the devices of a node that lie in one block of `group` consecutive ones: a card, a socket, the node.
struct NodeLink {
  int group = 0;
  Link link;
  bool operator==(const NodeLink&) const = default;
};

// Devices that share a network interface. Name, sockets and cores are for the record.
struct Node {
  std::string name;
  int sockets = 0, cores = 0;  // 0: not known
  std::vector<Device> devices;
  std::vector<NodeLink> links;  // the innermost first; the last one's group holds the whole node
  Bandwidth nic;   // of the network interface in each direction, shared by the devices; 0: there is none
  Bandwidth bus;   // what all messages within the node get together; 0: their links alone bound them
  Bandwidth host;  // what all devices get together to and from the node's memory; 0: as the bus
  double price_per_hour = 0;  // of the node, beside its devices' own; 0: not known
  bool operator==(const Node&) const = default;
};

// Kinds of computations, which reach different shares of a device's limit. The limit is its peak rate; for
// `memory` (pooling, normalization, pointwise layers, updates) it is its memory bandwidth. Passes are those
// of a Program's steps (docs/explanation/program.md).
enum class TaskKind { convolution, inner_product, memory };
enum class TaskPass { forward, backward_weights, backward };
inline constexpr int task_kinds = 3, task_passes = 3;

// A factor per kind and pass.
struct TaskFactors {
  std::array<std::array<double, task_passes>, task_kinds> values{{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}};
  double& at(TaskKind kind, TaskPass pass) {
    return values[static_cast<size_t>(kind)][static_cast<size_t>(pass)];
  }
  double at(TaskKind kind, TaskPass pass) const {
    return values[static_cast<size_t>(kind)][static_cast<size_t>(pass)];
  }
  bool operator==(const TaskFactors&) const = default;
};

// A measured collective over the first `devices` devices: `bytes` is what each has and gets.
struct CollectiveTime {
  int devices = 0;
  Bytes bytes;
  Seconds time;
  bool operator==(const CollectiveTime&) const = default;
};

// Seconds of computing that a device loses for each byte that it sends or receives meanwhile: what copies and
// protocols take of its processors (LogGP's overhead, of long messages). To and from devices of its node, and
// across nodes.
struct MessageOverhead {
  double node = 0, network = 0;
  bool operator==(const MessageOverhead&) const = default;
};

// What measuring has taught beyond the figures of devices and links; without it all factors are 1.
struct Calibration {
  TaskFactors efficiency;  // share of the device's limit that tasks reach
  // Measured over predicted seconds, from runs that were predicted with all of the rest.
  TaskFactors correction;
  double exchange_correction = 1, collective_correction = 1;
  MessageOverhead message_overhead;
  Seconds busy_link;  // that a message between nodes waits while a sum that is needed later uses its link
  std::vector<CollectiveTime> allreduce;
  bool operator==(const Calibration&) const = default;
};

// All that a machine file says (docs/reference/machines.md). Links within nodes and `network` describe them
// by levels; `pairs`, where it is not empty, holds every pair's own link instead.
struct Machine {
  std::string name;
  std::vector<std::string> about;  // notes: where the figures come from
  std::vector<Node> nodes;
  Link network;             // between two nodes: what one pair of devices gets when nobody else sends
  std::vector<Link> pairs;  // from device i to device j at i * devices + j; 0 for i = j
  Calibration calibration;
  bool operator==(const Machine&) const = default;
};

// A machine as planner and simulator ask about it. Device i runs rank i; the devices of a node are
// consecutive.
class DeviceGraph {
 public:
  explicit DeviceGraph(Machine machine);  // of one device or more; links of pairs i = i are set to 0

  const Machine& machine() const { return machine_; }
  const Calibration& calibration() const { return machine_.calibration; }
  int devices() const { return static_cast<int>(places_.size()); }
  int nodes() const { return static_cast<int>(machine_.nodes.size()); }
  const Device& device(int device) const;
  Bytes least_memory() const;           // of the device that has least
  double price_per_hour() const;        // of all devices and nodes; 0: none is known
  std::string instruction_set() const;  // of all devices; empty: they differ, or it is not known
  // The weight of each device where they are unequal (Caffe con Troll, section 2.3: in proportion to what
  // they compute in a second). Empty: all are equal, that is, the largest is no more than a tenth above the
  // smallest, since measured peaks of equal devices differ.
  std::vector<double> weights() const;
  const Node& node(int node) const { return machine_.nodes[static_cast<size_t>(node)]; }

  std::vector<int> node_of_devices() const;  // in order
  int node_of(int device) const { return places_[static_cast<size_t>(device)].node; }
  bool crosses_nodes(int from, int to) const { return node_of(from) != node_of(to); }
  // What one message gets when nobody else sends. From a device to itself: no time at all.
  Link link(int from, int to) const;
  // What the devices of a node together can send to other nodes; they can receive as much at the same time. 0
  // bytes per second: the node has no network interface.
  Bandwidth nic(int node) const { return this->node(node).nic; }
  Bandwidth bus(int node) const { return this->node(node).bus; }
  Bandwidth host(int node) const {
    return this->node(node).host.bytes_per_second > 0 ? this->node(node).host : bus(node);
  }
  int devices_sharing_nic(int node) const { return static_cast<int>(this->node(node).devices.size()); }

  // The first `count` devices alone. A node of which only a part is left keeps its own price. Throws
  // UserError when there are not so many.
  DeviceGraph first(int count) const;

  bool operator==(const DeviceGraph& other) const { return machine_ == other.machine_; }

 private:
  struct Place {
    int node, position;  // position: in the node
  };
  Machine machine_;
  std::vector<Place> places_;  // of each device
};

}  // namespace cortado
