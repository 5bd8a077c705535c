#include "cortado/cost/analytic.h"

#include <gtest/gtest.h>

#include "cortado/layers/convolution.h"

namespace cortado {
namespace {

// Two nodes of two devices: 1 TFLOP/s, 100 GB/s of memory, 10 GB/s and 1 us within a node, 1 GB/s and 10 us
// between nodes, whose interfaces give 1.5 GB/s.
DeviceGraph two_by_two() {
  Node node;
  node.devices.assign(
      2,
      Device{
          .name = "", .peak = {1e12}, .memory_bandwidth = {100e9}, .memory = {1 << 30}, .task_overhead = {}});
  node.links = {{.group = 2, .link = {{1e-6}, {10e9}}}};
  node.nic = {1.5e9};
  Machine machine;
  machine.name = "test";
  machine.nodes = {node, node};
  machine.network = {{10e-6}, {1e9}};
  return DeviceGraph(machine);
}

Task convolution_task() {
  ConvolutionOptions options;
  options.num_output = 64;
  options.kernel = {3};
  options.pad = {1};
  const std::vector<Shape> inputs{{16, 32, 20, 20}};
  return whole_task(std::make_shared<Convolution>(options), Phase::train, inputs, 1);
}

TEST(AnalyticCosts, TaskTakesItsFlopsOrItsBytes) {
  AnalyticCosts costs(two_by_two());
  Task task = convolution_task();
  const double flops = 2.0 * 16 * 64 * 20 * 20 * 32 * 9;
  TaskTime time = costs.task(task, 0);
  EXPECT_NEAR(time.forward.count, flops / 1e12, 1e-9 + 0.01 * flops / 1e12);
  EXPECT_NEAR(time.backward_weights.count, time.forward.count, 1e-9);
  EXPECT_NEAR(time.backward.count, time.forward.count, 1e-9);
  task.input_gradients = {false};
  EXPECT_EQ(costs.task(task, 0).backward.count, 0);
  // A quarter of the channels, all outputs: a quarter of the work.
  const Task quarter = cut_task(convolution_task(), task.domain_box, Range{8, 16});
  EXPECT_NEAR(forward_flops(quarter).count, forward_flops(task).count / 4, 1);
}

// Products count at the rate of what they multiply, whatever they read or write.
TEST(AnalyticCosts, ProductsOfBf16HaveARateOfTheirOwn) {
  Machine machine = two_by_two().machine();
  for (Node& node : machine.nodes)
    for (Device& device : node.devices) {
      device.bf16_peak = {2e12};
      device.memory_bandwidth = {1e15};
    }
  AnalyticCosts costs((DeviceGraph(machine))), of_f32_alone(two_by_two());
  Task task = convolution_task();
  const double f32 = costs.task(task, 0).forward.count;
  task.output_types = {ElementType::bf16};
  EXPECT_NEAR(costs.task(task, 0).forward.count, f32 / 2, 1e-3 * f32);
  EXPECT_NEAR(of_f32_alone.task(task, 0).forward.count, f32, 1e-3 * f32);
  task.input_types = {ElementType::bf16};
  task.output_types = {};
  EXPECT_NEAR(costs.task(task, 0).forward.count, f32 / 2, 1e-3 * f32);
  task.f32_products = true;
  EXPECT_NEAR(costs.task(task, 0).forward.count, f32, 1e-3 * f32);
  EXPECT_TRUE(rate_warnings(DeviceGraph(machine), Precision::bf16).empty());
  EXPECT_TRUE(rate_warnings(two_by_two(), Precision::f32).empty());
  EXPECT_NE(rate_warnings(two_by_two(), Precision::bf16).at(0).find("at the rate of f32"), std::string::npos);
}

TEST(AnalyticCosts, RingsShareTheInterfaceOfTheirNode) {
  AnalyticCosts costs(two_by_two());
  const Bytes bytes{100'000'000};
  const std::vector<std::vector<int>> one{{0, 2}}, two{{0, 2}, {1, 3}}, near{{0, 1}, {2, 3}};
  EXPECT_NEAR(costs.collective(Collective::allreduce, one, bytes).count, 0.1, 1e-3);
  EXPECT_NEAR(costs.collective(Collective::allreduce, two, bytes).count, 0.1 / 0.75, 1e-3);
  EXPECT_NEAR(costs.collective(Collective::allreduce, near, bytes).count, 0.01, 1e-4);
  EXPECT_NEAR(costs.collective(Collective::allgather, one, bytes).count, 0.05, 1e-3);
  EXPECT_EQ(costs.collective(Collective::allreduce, std::vector<std::vector<int>>{{3}}, bytes).count, 0);
}

TEST(AnalyticCosts, DevicesShareTheirBus) {
  Machine machine = two_by_two().machine();
  for (Node& node : machine.nodes) node.bus = {4e9};
  AnalyticCosts costs((DeviceGraph(machine)));
  const Bytes bytes{100'000'000};
  // Two links of a ring get 2 GB/s each; between nodes the bus is of no concern.
  const std::vector<std::vector<int>> near{{0, 1}, {2, 3}}, far{{0, 2}};
  EXPECT_NEAR(costs.collective(Collective::allreduce, near, bytes).count, 0.05, 1e-4);
  EXPECT_NEAR(costs.collective(Collective::allreduce, far, bytes).count, 0.1, 1e-3);
  const ExchangeVolume volume{.inside = 1e6, .node_inside = 2e6, .messages = 1, .total = {1}};
  EXPECT_NEAR(costs.exchange(volume).count, 5e-4 + 1e-6, 1e-9);
}

// 100 MB of each device pass the memory of its own host, half of them then the network.
TEST(AnalyticCosts, WhatServersSumPassesTheirHostsMemory) {
  Machine machine = two_by_two().machine();
  const Bytes bytes{100'000'000};
  const std::vector<std::vector<int>> all{{0, 1, 2, 3}}, near{{0, 1}, {2, 3}}, far{{0, 2}, {1, 3}},
      alone{{3}};
  const auto seconds = [&](Collective kind, const std::vector<std::vector<int>>& groups) {
    return AnalyticCosts(DeviceGraph(machine)).collective(kind, groups, bytes).count;
  };
  const double through_link = 0.1 / 10 + 2e-6, through_network = 0.2 / 2 / 1.5 + 20e-6;
  for (Collective kind : {Collective::push, Collective::pull}) {
    EXPECT_NEAR(seconds(kind, near), through_link, 1e-9);  // each device has its own
    EXPECT_NEAR(seconds(kind, all), through_link + through_network, 1e-9);
    EXPECT_NEAR(seconds(kind, far), through_link + through_network, 1e-9);
    EXPECT_EQ(seconds(kind, alone), 0);
  }
  for (Node& node : machine.nodes) node.host = {4e9};
  const double through_host = 0.2 / 4 + 2e-6;  // which both devices share, one after the other
  EXPECT_NEAR(seconds(Collective::push, near), through_host, 1e-9);
  EXPECT_NEAR(seconds(Collective::pull, all), through_host + through_network, 1e-9);
}

TEST(AnalyticCosts, SmallSumsTakeTheirLatency) {
  AnalyticCosts costs(two_by_two());
  const std::vector<std::vector<int>> all{{0, 1, 2, 3}};
  EXPECT_NEAR(costs.collective(Collective::allreduce, all, {8}).count, 4 * 10e-6, 1e-6);
}

TEST(AnalyticCosts, ExchangeTakesTheSlowestWay) {
  AnalyticCosts costs(two_by_two());
  EXPECT_EQ(costs.exchange({}).count, 0);
  ExchangeVolume volume{.inside = 1e6, .across = 0, .node_across = 0, .messages = 1, .total = {1}};
  EXPECT_NEAR(costs.exchange(volume).count, 1e-4 + 1e-6, 1e-9);
  volume.across = 1e6;
  EXPECT_NEAR(costs.exchange(volume).count, 1e-3 + 1e-5, 1e-9);
  volume.node_across = 2e6;
  EXPECT_NEAR(costs.exchange(volume).count, 2e6 / 1.5e9 + 1e-5, 1e-9);
}

}  // namespace
}  // namespace cortado
