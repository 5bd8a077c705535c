#include "cortado/plan/measuring.h"

#include <functional>
#include <gtest/gtest.h>

#include "cortado/cost/measured.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/problem.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/plan/exhaustive.h"
#include "cortado/plan/planner.h"

#include "tests/plan/zoo.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

// LeNet of models/lenet.
Network lenet(int64_t batch) {
  SourceOptions data;
  data.kind = SourceOptions::Kind::input;
  data.shapes = {Shape{batch, 1, 28, 28}, Shape{batch}};
  auto convolution = [](int64_t outputs) {
    ConvolutionOptions options;
    options.num_output = outputs;
    options.kernel = {5};
    return std::make_shared<Convolution>(options);
  };
  auto product = [](int64_t outputs) {
    InnerProductOptions options;
    options.num_output = outputs;
    return std::make_shared<InnerProduct>(options);
  };
  auto pooling = [] { return std::make_shared<Pooling>(PoolingOptions{.kernel = {2}, .stride = {2}}); };
  std::vector<LayerDeclaration> layers;
  layers.push_back(testing::declared("data", std::make_shared<Source>(data), {}, {"data", "label"}));
  layers.push_back(testing::declared("conv1", convolution(20), {"data"}, {"conv1"}));
  layers.push_back(testing::declared("pool1", pooling(), {"conv1"}, {"pool1"}));
  layers.push_back(testing::declared("conv2", convolution(50), {"pool1"}, {"conv2"}));
  layers.push_back(testing::declared("pool2", pooling(), {"conv2"}, {"pool2"}));
  layers.push_back(testing::declared("ip1", product(500), {"pool2"}, {"ip1"}));
  layers.push_back(
      testing::declared("relu1", std::make_shared<Pointwise>(ReluOptions{}), {"ip1"}, {"relu1"}));
  layers.push_back(testing::declared("ip2", product(10), {"relu1"}, {"ip2"}));
  layers.push_back(testing::declared("loss", std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{}),
                                     {"ip2", "label"}, {"loss"}));
  return testing::built(layers);
}

// Devices of 10 GFLOP/s, joined by links of that many bytes a second.
DeviceGraph machine(double bandwidth, int devices = 2) {
  Node node;
  node.devices.assign(static_cast<size_t>(devices), Device{.name = "",
                                                           .peak = {1e10},
                                                           .memory_bandwidth = {1e10},
                                                           .memory = {int64_t{1} << 30},
                                                           .task_overhead = {}});
  node.links = {{.group = devices, .link = {{1e-5}, {bandwidth}}}};
  Machine machine;
  machine.name = "test";
  machine.nodes = {node};
  return DeviceGraph(machine);
}

// A measurement without a clock: no faster than the peak, but as uneven as kernels are.
TaskTime fake_time(const Task& task) {
  const double uneven = 1 + static_cast<double>(std::hash<std::string>()(problem_of(task)) % 1000) / 400;
  double elements = 0;
  for (const Box& box : task.input_boxes) elements += static_cast<double>(box.shape().size());
  for (const Box& box : task.output_boxes) elements += static_cast<double>(box.shape().size());
  const double flops = task.layer().splits_backward() ? forward_flops(task).count : 0;
  const Seconds pass{uneven * (flops / 1e10 + elements * 1e-9)};
  return {.forward = pass, .backward_weights = pass, .backward = pass};
}

// The same with everything measured.
class AllMeasured : public MeasuredCosts {
 public:
  using MeasuredCosts::MeasuredCosts;
  bool concurrent() const override { return false; }  // as others are while they measure
  TaskTime task(const Task& task, int device) override { return measure(task, device); }
};

// The optimum of all candidates measured, by trying everything.
struct Truth {
  double seconds = 0;
  int tasks = 0;
};
Truth truth_of(const Network& net, const DeviceGraph& machine) {
  TaskTimes times("", "");
  AllMeasured costs(machine, times, fake_time);
  const int devices = machine.devices();
  const plan::PlanGraph graph =
      plan::make_plan_graph(net, {.devices = devices}, costs, machine.node_of_devices());
  return {plan::exhaustive_search(graph.costs, 1'000'000'000).seconds, times.size()};
}

void expect_optimum(const Network& net, const DeviceGraph& machine) {
  const Truth truth = truth_of(net, machine);
  const int devices = machine.devices();
  const std::vector<int> nodes = machine.node_of_devices();
  TaskTimes times("", "");
  MeasuredCosts costs(machine, times, fake_time);
  const plan::Plan plan = plan::make_plan(net, {.devices = devices}, costs, nodes);
  EXPECT_DOUBLE_EQ(plan.seconds.count, truth.seconds);
  for (const plan::PlannedGroup& group : plan.groups) EXPECT_FALSE(group.compute.bound);
  for (const plan::Assignment& baseline : plan.baselines)
    EXPECT_GE(baseline.seconds.count, plan.seconds.count * (1 - 1e-9)) << baseline.name;
  // A second plan has all that it needs.
  const int measured = costs.measurements();
  EXPECT_EQ(plan::make_plan(net, {.devices = devices}, costs, nodes).strategy, plan.strategy);
  EXPECT_EQ(costs.measurements(), measured);
}

TEST(Measuring, FindsTheOptimumOfAllMeasured) {
  for (double bandwidth : {1e6, 1e8, 1e10}) {
    for (int devices : {2, 3, 4}) {
      SCOPED_TRACE(std::to_string(bandwidth) + " between " + std::to_string(devices));
      expect_optimum(lenet(12), machine(bandwidth, devices));
    }
  }
}

TEST(Measuring, FindsTheOptimumOfAlexNet) {
  expect_optimum(testing::zoo_net("alexnet", 32, {3, 224, 224}), machine(1e9));
}

// Where sending costs much, candidates that send are never measured.
TEST(Measuring, LeavesOutWhatNoOptimumUses) {
  const Network net = lenet(16);
  TaskTimes times("", "");
  MeasuredCosts costs(machine(1e6), times, fake_time);
  plan::PlanGraph graph = plan::make_plan_graph(net, {.devices = 2}, costs, {0, 0});
  const plan::Measuring done = plan::measure_optimum(net, {.devices = 2}, costs, graph, {});
  const Truth truth = truth_of(net, machine(1e6));
  EXPECT_DOUBLE_EQ(plan::search(graph.costs).seconds, truth.seconds);
  EXPECT_GT(done.candidates, 0);
  EXPECT_LT(times.size(), truth.tasks);
}

// Peaks that kernels pass: bounds are lowered until none is passed.
TEST(Measuring, SurvivesBoundsThatAreNone) {
  const Network net = lenet(16);
  TaskTimes times("", "");
  auto faster = [](const Task& task) {
    TaskTime time = fake_time(task);
    for (auto pass : {&TaskTime::forward, &TaskTime::backward_weights, &TaskTime::backward})
      (time.*pass).count /= 50;
    return time;
  };
  MeasuredCosts costs(machine(1e8), times, faster);
  const plan::Plan plan = plan::make_plan(net, {.devices = 2}, costs, {0, 0});
  for (const plan::PlannedGroup& group : plan.groups) EXPECT_FALSE(group.compute.bound);
  for (const plan::Assignment& baseline : plan.baselines)
    EXPECT_GE(baseline.seconds.count, plan.seconds.count * (1 - 1e-9)) << baseline.name;
}

}  // namespace
}  // namespace cortado
