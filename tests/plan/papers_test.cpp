// What the planning papers found comes out of the planner, with costs that are calibrated on their figures
// for one device alone (docs/results/papers.md).
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/plan/search.h"

#include "tests/plan/zoo.h"

namespace cortado {
namespace {

using plan::PlanGraph;
using plan::Priced;

constexpr const char* papers_dimensions = "nchw";

// A net on the first devices of a machine, 32 samples each, and its optimum.
class Planned {
 public:
  Planned(const std::string& net, int extent, const std::string& machine, int devices,
          const std::string& dimensions = papers_dimensions, CostModel* costs = nullptr)
      : network_(testing::zoo_net(net, int64_t{32} * devices, {3, extent, extent})),
        machine_(testing::ready_machine(machine, devices)) {
    AnalyticCosts analytic(machine_);
    graph_ = plan::make_plan_graph(network_, {.devices = devices, .dimensions = dimensions},
                                   costs ? *costs : analytic, machine_.node_of_devices());
    assignment_ = plan::search(graph_.costs).assignment;
  }

  int vertex(const std::string& layer) const {
    for (int v = 0; v < graph_.costs.size(); ++v)
      if (graph_.costs.vertices()[v].name == layer) return v;
    ADD_FAILURE() << "no layer " << layer;
    return -1;
  }
  const Priced& chosen(const std::string& layer) const {
    const auto v = static_cast<size_t>(vertex(layer));
    return graph_.candidates[v][static_cast<size_t>(assignment_[v])];
  }
  std::string cut(const std::string& layer) const { return chosen(layer).strategy.config.degrees.text(); }
  const Priced& priced(const std::string& layer, const Degrees& degrees) const {
    for (const Priced& candidate : graph_.candidates[static_cast<size_t>(vertex(layer))])
      if (candidate.strategy.config.degrees == degrees) return candidate;
    throw InternalError("no such candidate");
  }
  // What a layer costs whose only input lies by sample over all devices: transfer, computing, sums.
  double cost(const std::string& layer, const Degrees& degrees) const {
    const int to = vertex(layer);
    for (size_t e = 0; e < graph_.edges.size(); ++e) {
      const PlanGraph::Edge& edge = graph_.edges[e];
      if (edge.to != to) continue;
      const auto& from = graph_.candidates[static_cast<size_t>(edge.from)];
      const auto& own = graph_.candidates[static_cast<size_t>(to)];
      for (size_t a = 0; a < from.size(); ++a) {
        for (size_t b = 0; b < own.size(); ++b) {
          if (from[a].strategy.config.degrees != Degrees{.n = machine_.devices()} ||
              own[b].strategy.config.degrees != degrees)
            continue;
          return own[b].total().count + (*graph_.costs.edges()[e].seconds)[a * own.size() + b];
        }
      }
    }
    throw InternalError("no such candidates");
  }
  // How many times as much a built-in strategy sends.
  double sent_by(const char* strategy) const {
    const auto other = graph_.assignment(network_, built_in_strategy(strategy, network_, machine_.devices()));
    return static_cast<double>(graph_.sent_bytes(other).count) /
           static_cast<double>(graph_.sent_bytes(assignment_).count);
  }

 private:
  Network network_;
  DeviceGraph machine_;
  PlanGraph graph_;
  std::vector<int> assignment_;
};

// DeePa, Table 2: 27.0 on two devices, 28.8 on one, 38.7 on four, 135.7 on sixteen, 1076 by sample.
TEST(Papers, AlexNetsFirstInnerProductIsCheapestOnTwoOfSixteenDevices) {
  const Planned alexnet("alexnet", 224, "deepa-tables", 16);
  const Degrees order[] = {{.c = 2}, {.c = 1}, {.c = 4}, {.c = 16}, {.n = 16}};
  for (size_t i = 1; i < std::size(order); ++i)
    EXPECT_LT(alexnet.cost("fc6", order[i - 1]), alexnet.cost("fc6", order[i])) << order[i].text();
  EXPECT_EQ(alexnet.cut("fc6"), "c2");
  // The summed dimension, which the paper does not have, also wants two.
  const Planned more("alexnet", 224, "deepa-tables", 16, std::string(plan::all_dimensions));
  EXPECT_EQ(more.chosen("fc6").strategy.config.devices.size(), 2);
}

// DeePa, Table 3 and Figure 10: the last convolutions of VGG-16 on 4 devices of 16, those before on all.
TEST(Papers, Vgg16TakesFewerDevicesForItsLastConvolutions) {
  const Planned vgg("vgg-16", 224, "deepa-tables", 16);
  for (const char* layer : {"conv1_1", "conv2_2", "conv3_3"}) EXPECT_EQ(vgg.cut(layer), "n16") << layer;
  for (const char* layer : {"conv5_1", "conv5_2", "conv5_3"})
    EXPECT_EQ(vgg.chosen(layer).strategy.config.devices.size(), 4) << layer;
  for (const char* layer : {"fc6", "fc7", "fc8"})
    EXPECT_LE(vgg.chosen(layer).strategy.config.devices.size(), 4) << layer;
}

// Layer-wise parallelism, Table 5, but for the last convolutions.
TEST(Papers, Vgg16OnFourDevicesIsCutBySampleThenByChannelOnFewerDevices) {
  const Planned vgg("vgg-16", 224, "layer-wise-sizes", 4);
  for (const char* layer : {"conv1_1", "conv1_2", "conv2_1", "conv2_2", "conv3_1", "conv3_2", "conv3_3",
                            "conv4_1", "conv4_2", "conv4_3"})
    EXPECT_EQ(vgg.cut(layer), "n4") << layer;
  EXPECT_EQ(vgg.cut("fc6"), "c4");
  EXPECT_EQ(vgg.cut("fc7"), "c4");
  EXPECT_EQ(vgg.cut("fc8"), "c2");
  EXPECT_EQ(vgg.cut("loss"), "1");
}

// Costs in which convolutions cut by rows and columns alone are so much faster than by sample as the ones
// that DeePa measured (Table 3: 54.7 and 63.7).
class FasterInSpace : public AnalyticCosts {
 public:
  using AnalyticCosts::AnalyticCosts;
  TaskTime task(const Task& task, int device) override {
    TaskTime time = AnalyticCosts::task(task, device);
    const auto whole = [&](int axis) { return task.domain_box[axis].size() == task.outputs[0][axis]; };
    if (task.layer().type() != "Convolution" || !whole(0) || whole(2) || whole(3)) return time;
    for (Seconds* pass : {&time.forward, &time.backward_weights, &time.backward}) pass->count *= 54.7 / 63.7;
    return time;
  }
};

// Why Table 5's cut of the last convolutions is not ours: by a roofline rows and columns compute no faster
// than samples, and cost halos and a move. With the speed that the paper measured they win, there and nowhere
// else.
TEST(Papers, TheLastConvolutionsAreCutInSpaceWhereKernelsAreFasterSo) {
  const Planned plain("vgg-16", 224, "layer-wise-p100", 4);
  const Degrees space{.h = 2, .w = 2};
  for (const char* layer : {"conv5_1", "conv5_2", "conv5_3"}) {
    EXPECT_EQ(plain.cut(layer), "n4");
    EXPECT_GE(plain.priced(layer, space).compute.total().count,
              plain.chosen(layer).compute.total().count * (1 - 1e-9));
  }
  FasterInSpace costs(testing::ready_machine("layer-wise-p100", 4));
  const Planned measured("vgg-16", 224, "layer-wise-p100", 4, papers_dimensions, &costs);
  for (const char* layer : {"conv5_1", "conv5_2", "conv5_3"})
    EXPECT_EQ(measured.cut(layer), "h2 w2") << layer;
}

// DeePa, Figure 8 and section 1: up to 23 times less than data parallelism; 1.2 to 2.7 times less than "one
// weird trick". Layer-wise parallelism, section 1: 1.3 to 23 times less.
TEST(Papers, LessIsSent) {
  const Planned alexnet("alexnet", 224, "deepa-tables", 16), vgg("vgg-16", 224, "deepa-tables", 16),
      inception("inception-v3", 299, "deepa-tables", 16);
  EXPECT_GE(alexnet.sent_by("data"), 23);
  EXPECT_GE(vgg.sent_by("data"), 1.3);
  EXPECT_GE(inception.sent_by("data"), 1.3);
  for (const Planned* plan : {&alexnet, &vgg, &inception}) EXPECT_GE(plan->sent_by("owt"), 1.2);
}

}  // namespace
}  // namespace cortado
