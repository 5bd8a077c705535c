#include "cortado/sim/predict.h"

#include <gtest/gtest.h>
#include <numeric>

#include "cortado/cost/analytic.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pooling.h"
#include "cortado/plan/plan_graph.h"
#include "cortado/plan/planner.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

LayerPtr convolution(int64_t outputs) {
  ConvolutionOptions options;
  options.num_output = outputs;
  options.kernel = {3};
  options.pad = {1};
  return std::make_shared<Convolution>(options);
}

Network chain() {
  SourceOptions data;
  data.kind = SourceOptions::Kind::input;
  data.shapes = {Shape{8, 4, 16, 16}, Shape{8, 20}};
  InnerProductOptions product;
  product.num_output = 20;  // whose gradients are worth replicating
  std::vector<LayerDeclaration> layers;
  layers.push_back(testing::declared("data", std::make_shared<Source>(data), {}, {"x", "y"}));
  layers.push_back(testing::declared("a", convolution(8), {"x"}, {"a"}));
  layers.push_back(testing::declared("b", convolution(12), {"a"}, {"b"}));
  layers.push_back(testing::declared(
      "p", std::make_shared<Pooling>(PoolingOptions{.kernel = {2}, .stride = {2}}), {"b"}, {"p"}));
  layers.push_back(testing::declared("f", std::make_shared<InnerProduct>(product), {"p"}, {"f"}));
  layers.push_back(testing::declared("loss", std::make_shared<EuclideanLoss>(), {"f", "y"}, {"loss"}));
  return testing::built(layers);
}

// Without latencies, so that messages of one number cost nothing.
DeviceGraph machine() {
  Node node;
  node.devices.assign(2, Device{.name = "",
                                .peak = {1e9},
                                .memory_bandwidth = {1e9},
                                .memory = {int64_t{1} << 30},
                                .task_overhead = {}});
  node.links = {{.group = 2, .link = {{0}, {1e8}}}};
  Machine machine;
  machine.name = "test";
  machine.nodes = {node};
  return DeviceGraph(machine);
}

template <class Values>
double sum(const Values& values) {
  return std::accumulate(std::begin(values), std::end(values), Seconds{}).count;
}

class Predicted : public ::testing::TestWithParam<std::string_view> {};

// The steps of a program are what Eq. 1 adds up.
TEST_P(Predicted, StepsAddUpToThePlan) {
  const Network net = chain();
  AnalyticCosts costs(machine());
  const plan::PlanGraph graph = plan::make_plan_graph(net, {.devices = 2}, costs, {0, 0});
  const Strategy strategy = built_in_strategy(GetParam(), net, 2);
  const double planned = graph.costs.seconds(graph.assignment(net, strategy));
  const bool replicates = strategy.find("f")->sync == GradientSync::replicate;
  EXPECT_EQ(replicates, GetParam() == "replicated");
  const Prediction prediction =
      predict(net, {.strategies = resolve(strategy, net, 2, "test"), .ranks = 2}, costs, {0, 0});
  EXPECT_NEAR(sum(prediction.steps), planned, 1e-3 * planned);
  // Layers and parts hold every step once.
  double of_layers = 0, measured = 0;
  const IndexedVector<StepIndex, Seconds> ones(prediction.steps.size(), Seconds{1});
  for (const PredictedLayer& layer : compare(prediction, net, ones)) {
    of_layers += sum(layer.predicted);
    measured += sum(layer.measured);
  }
  EXPECT_NEAR(of_layers, sum(prediction.steps), 1e-9);
  const auto loads = std::ranges::count_if(prediction.program.steps, &Step::is<steps::Load>);
  EXPECT_EQ(measured, static_cast<double>(std::ssize(prediction.steps) - loads));
}
INSTANTIATE_TEST_SUITE_P(Strategies, Predicted,
                         ::testing::Values("single", "data", "model", "owt", "spatial", "replicated"));

// Where updates are slow, devices own shares of parameters; and still steps are what the plan adds up.
TEST(Predicted, StepsOfOwnersAddUpToThePlan) {
  Machine slow = machine().machine();
  for (Device& device : slow.nodes[0].devices) device.memory_bandwidth = {1e8};
  AnalyticCosts costs((DeviceGraph(slow)));
  const Network net = chain();
  const plan::Plan plan = plan::make_plan(net, {.devices = 2, .dimensions = "n"}, costs, {0, 0});
  EXPECT_EQ(plan.strategy.find("a")->sync, GradientSync::owner);
  const Prediction prediction =
      predict(net, {.strategies = resolve(plan.strategy, net, 2, "test"), .ranks = 2}, costs, {0, 0});
  EXPECT_NEAR(sum(prediction.steps), plan.seconds.count, 1e-3 * plan.seconds.count);
}

// Steps that took k times what the machine's limits allow have an efficiency of 1 / k, and correct messages
// by k.
TEST(Corrected, BringsBackWhatWasMeasured) {
  const Network net = chain();
  AnalyticCosts costs(machine());
  const NodeStrategies strategies = resolve(built_in_strategy("model", net, 2), net, 2, "test");
  const Prediction prediction = predict(net, {.strategies = strategies, .ranks = 2}, costs, {0, 0});
  IndexedVector<StepIndex, Seconds> measured = prediction.steps;
  for (Seconds& seconds : measured) seconds.count *= 4;
  const Machine learned = corrected(machine().machine(), prediction, {0, 0}, measured);
  EXPECT_NEAR(learned.calibration.exchange_correction, 4, 1e-9);
  for (TaskPass pass : {TaskPass::forward, TaskPass::backward_weights, TaskPass::backward})
    EXPECT_NEAR(learned.calibration.efficiency.at(TaskKind::convolution, pass), 0.25, 1e-9);
  AnalyticCosts again((DeviceGraph(learned)));
  const Prediction second = predict(net, {.strategies = strategies, .ranks = 2}, again, {0, 0});
  // Products that memory binds have the efficiency of other layers, of which none has a pass for weights.
  EXPECT_NEAR(sum(second.steps), sum(measured), 2e-3 * sum(measured));
}

}  // namespace
}  // namespace cortado
