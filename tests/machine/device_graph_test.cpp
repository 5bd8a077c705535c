#include "cortado/machine/device_graph.h"

#include <cmath>
#include <gtest/gtest.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

Link link_of(double latency, double bandwidth) { return {{latency}, {bandwidth}}; }

// Two nodes of four devices, two a socket, with a wide interface that a single pair does not fill; a third
// node with one device and a narrow interface.
Machine three_nodes() {
  Machine machine{.name = "three"};
  Node node{.devices = std::vector<Device>(4, {.name = "fast", .peak = {2e12}})};
  node.links = {{2, link_of(1e-6, 70e9)}, {4, link_of(2e-6, 30e9)}};
  node.nic = {24e9};
  machine.nodes = {node, node, {.devices = {{.name = "slow", .peak = {1e12}}}, .nic = {5e9}}};
  machine.network = link_of(3e-6, 12e9);
  return machine;
}

// A link for each pair of five devices on two nodes, no two alike.
Machine five_devices() {
  Machine machine{.name = "five"};
  machine.nodes = {{.devices = std::vector<Device>(2), .nic = {1e9}},
                   {.devices = std::vector<Device>(3), .nic = {1e9}}};
  for (int from = 0; from < 5; ++from) {
    for (int to = 0; to < 5; ++to)
      machine.pairs.push_back(from == to ? Link{} : link_of(1e-6 * from, 1e9 * (1 + 10 * from + to)));
  }
  return machine;
}

TEST(DeviceGraph, CountsDevicesInTheOrderOfNodes) {
  const DeviceGraph graph(three_nodes());
  EXPECT_EQ(graph.devices(), 9);
  EXPECT_EQ(graph.nodes(), 3);
  EXPECT_EQ(graph.node_of(3), 0);
  EXPECT_EQ(graph.node_of(4), 1);
  EXPECT_EQ(graph.node_of(8), 2);
  EXPECT_EQ(graph.device(7).name, "fast");
  EXPECT_EQ(graph.device(8).name, "slow");
  EXPECT_FALSE(graph.crosses_nodes(4, 7));
  EXPECT_TRUE(graph.crosses_nodes(3, 4));
}

TEST(DeviceGraph, WeighsUnequalDevices) {
  const DeviceGraph three(three_nodes());
  EXPECT_EQ(three.weights(), (std::vector<double>{2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000, 1000}));
  EXPECT_TRUE(three.first(8).weights().empty());
  Machine machine = three_nodes();
  machine.nodes[2].devices[0].weight = 1900;  // as near as measurements of equal devices
  EXPECT_TRUE(DeviceGraph(machine).weights().empty());
  machine.nodes[1].devices[1].weight = 500;
  EXPECT_EQ(DeviceGraph(machine).weights(),
            (std::vector<double>{2000, 2000, 2000, 2000, 2000, 500, 2000, 2000, 1900}));
}

TEST(DeviceGraph, APairHasTheLinkOfItsInnermostGroup) {
  const DeviceGraph graph(three_nodes());
  EXPECT_EQ(graph.link(0, 1), link_of(1e-6, 70e9));
  EXPECT_EQ(graph.link(1, 2), link_of(2e-6, 30e9));  // neighbours, but of two sockets
  EXPECT_EQ(graph.link(6, 7), link_of(1e-6, 70e9));  // groups are counted in the node, not in the machine
  EXPECT_EQ(graph.link(7, 4), link_of(2e-6, 30e9));
}

TEST(DeviceGraph, ADevicesLinkToItselfTakesNoTime) {
  for (const DeviceGraph& graph : {DeviceGraph(three_nodes()), DeviceGraph(five_devices())})
    EXPECT_EQ(graph.link(1, 1).time({1 << 30}).count, 0);
}

TEST(DeviceGraph, ALinksTimeIsLatencyAndBytesOverBandwidth) {
  EXPECT_DOUBLE_EQ(link_of(5e-6, 2e9).time({1000}).count, 5e-6 + 0.5e-6);
}

TEST(DeviceGraph, DevicesShareTheNetworkInterfaceOfTheirNode) {
  const DeviceGraph graph(three_nodes());
  // One pair gets what the network gives a pair, or what the narrower interface has.
  EXPECT_EQ(graph.link(0, 4), link_of(3e-6, 12e9));
  EXPECT_EQ(graph.link(0, 8), link_of(3e-6, 5e9));
  EXPECT_EQ(graph.link(8, 0), link_of(3e-6, 5e9));
  // All together share the interface: four that send at a time get 6 GB/s each, not 12.
  EXPECT_EQ(graph.nic(0).bytes_per_second / graph.devices_sharing_nic(0), 6e9);
  EXPECT_EQ(graph.devices_sharing_nic(2), 1);
}

TEST(DeviceGraph, PairsGoBeforeLevels) {
  const DeviceGraph graph(five_devices());
  EXPECT_EQ(graph.link(1, 4), link_of(1e-6, 15e9));
  EXPECT_EQ(graph.link(4, 1), link_of(4e-6, 42e9));
}

TEST(DeviceGraph, FirstTakesWholeNodesAndAPartOfTheLast) {
  const DeviceGraph graph(three_nodes());
  const DeviceGraph six = graph.first(6);
  EXPECT_EQ(six.devices(), 6);
  EXPECT_EQ(six.nodes(), 2);
  EXPECT_EQ(six.devices_sharing_nic(1), 2);  // those left have the interface for themselves
  for (int from = 0; from < 6; ++from) {
    for (int to = 0; to < 6; ++to) EXPECT_EQ(six.link(from, to), graph.link(from, to)) << from << to;
  }
  EXPECT_EQ(graph.first(9), graph);
}

TEST(DeviceGraph, FirstKeepsTheirPairsAndWhatTheyMeasured) {
  Machine machine = five_devices();
  machine.calibration.exchange_correction = 1.5;
  machine.calibration.allreduce = {{2, {4}, {1e-6}}, {3, {4}, {2e-6}}, {5, {4}, {3e-6}}};
  const DeviceGraph graph(machine), three = graph.first(3);
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) EXPECT_EQ(three.link(from, to), graph.link(from, to)) << from << to;
  }
  EXPECT_EQ(three.calibration().allreduce.size(), 2u);
  EXPECT_EQ(three.calibration().exchange_correction, 1.5);
}

TEST(DeviceGraph, FirstRefusesMoreDevicesThanThereAre) {
  for (int count : {-1, 0, 10}) {
    try {
      DeviceGraph(three_nodes()).first(count);
      FAIL() << count;
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(),
                "machine 'three' has 9 devices, " + std::to_string(count) + " cannot be taken; give 1 to 9");
    }
  }
}

TEST(TaskFactors, AreByKindAndPhase) {
  TaskFactors factors;
  EXPECT_EQ(factors.at(TaskKind::memory, TaskPass::backward), 1);
  factors.at(TaskKind::inner_product, TaskPass::backward_weights) = 0.5;
  EXPECT_EQ(factors.values[1][1], 0.5);
  EXPECT_EQ(std::as_const(factors).at(TaskKind::inner_product, TaskPass::backward_weights), 0.5);
}

}  // namespace
}  // namespace cortado
