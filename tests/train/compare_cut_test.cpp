// The comparison that `cortado verify` makes: silent on a training that is cut rightly, and loud, with the
// right layer, on one that is not.
#include "cortado/train/compare_cut.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <gtest/gtest.h>
#include <memory>

#include "cortado/base/compute_threads.h"
#include "cortado/base/random.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/parallel/strategy.h"

#include "tests/base/part_of.h"
#include "tests/comm/forwarding_communicator.h"

namespace cortado {
namespace {

constexpr const char* compared_net = R"(name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 8 dim: 3 dim: 8 dim: 8 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "relu" }
layer { name: "branch" type: "Convolution" bottom: "relu" top: "branch"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "relu" bottom: "branch" top: "sum" }
layer { name: "ip" type: "InnerProduct" bottom: "sum" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

Network small_net() {
  NetFile file = parse_net(compared_net, "small.prototxt");
  return load_network(file, net_state(Phase::train, 0, {}), declared_source_shapes).network;
}

// Random images and labels 0 to 4; `shift` moves the elements a rank reads, as a broken reader would.
std::map<std::string, BatchSource> drawn_data(const Network& network, int64_t shift,
                                              const std::map<std::string, BatchPart>& parts) {
  struct Batch {
    Shape shape;
    std::vector<float> values, part;
    Box box;
  };
  auto batches = std::make_shared<std::map<std::string, Batch>>();
  std::map<std::string, BatchSource> sources;
  for (const auto& node : network.nodes()) {
    if (!node.layer->is_source()) continue;
    const Shape& shape = network.tensors()[node.outputs[0]].shape;
    Batch& batch = (*batches)[node.name];
    batch.shape = shape;
    batch.box = Box::whole(shape);
    const RandomStream random{.seed = 3, .owner = RandomStream::owner_of(node.name)};
    for (int64_t i = 0; i < shape.size(); ++i) {
      const double drawn = random.uniform(static_cast<uint64_t>(i));
      batch.values.push_back(
          static_cast<float>(node.name == "label" ? std::floor(5 * drawn) : 2 * drawn - 1));
    }
    sources[node.name] = [batches, &batch] {
      batch.part = part_of(batch.shape, batch.values, batch.box);
      return std::vector<const float*>{batch.part.data()};
    };
  }
  for (const auto& [layer, part] : parts) {
    Batch& batch = batches->at(layer);
    batch.box = part.tops[0];
    if (part.samples.begin > 0)
      std::ranges::rotate(batch.values, batch.values.begin() + shift * batch.shape.count(1));
  }
  return sources;
}

CutComparison compare(const Network& network, const std::string& strategy, int ranks, int64_t shift = 0) {
  set_compute_threads(1);
  CutComparison comparison;
  LocalJob job(ranks);
  job.run([&](Communicator& communicator) {
    const NodeStrategies strategies =
        resolve(load_strategy(strategy, network, ranks), network, ranks, strategy);
    const CutComparison found = compare_cut_training(
        {.network = network,
         .cut = {.strategies = strategies, .ranks = ranks, .rank = communicator.rank()},
         .job = communicator,
         .data = [&](const auto& samples) { return drawn_data(network, shift, samples); },
         .iterations = 3,
         .rate = 0.01});
    if (communicator.rank() == 0) comparison = found;
  });
  return comparison;
}

// A job that loses sums of gradients: each rank keeps its own addend.
class LosingSums : public testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;

  std::unique_ptr<Transmission> allreduce(std::span<const int> group, ElementPointer values,
                                          int64_t count) override {
    if (values.type == ElementType::f32) values = lost_.emplace_back(static_cast<size_t>(count)).data();
    return ForwardingCommunicator::allreduce(group, values, count);
  }

 private:
  std::deque<std::vector<float>> lost_;
};

TEST(CompareCut, ATrainingThatIsCutRightlyIsTheSame) {
  const Network network = small_net();
  for (const std::string strategy : {"single", "data", "model", "owt", "spatial", "random:1", "random:2"}) {
    for (int ranks : {2, 4}) {
      SCOPED_TRACE(strategy + " on " + std::to_string(ranks));
      const CutComparison found = compare(network, strategy, ranks);
      EXPECT_EQ(describe_difference(found), "");
      for (const LayerDifference& layer : found.layers) {
        EXPECT_LT(layer.activation.value_or(0), 1e-5) << layer.layer;
        EXPECT_LT(layer.gradient.value_or(0), 1e-5) << layer.layer;
        EXPECT_LT(layer.weight_gradient.value_or(0), 1e-5) << layer.layer;
        EXPECT_LT(layer.weight.value_or(0), 1e-5) << layer.layer;
      }
      EXPECT_LT(found.uncut_losses.back(), found.uncut_losses.front());
    }
  }
}

TEST(CompareCut, ComparesEveryLayerOnce) {
  const CutComparison found = compare(small_net(), "data", 2);
  ASSERT_EQ(found.layers.size(), 8u);
  for (const LayerDifference& layer : found.layers) {
    const bool weights = layer.layer == "conv" || layer.layer == "branch" || layer.layer == "ip";
    EXPECT_EQ(layer.weight.has_value(), weights) << layer.layer;
    EXPECT_EQ(layer.weight_gradient.has_value(), weights) << layer.layer;
    // A ReLU is fused with its convolution, whose own output then does not exist.
    EXPECT_EQ(layer.activation.has_value(), layer.layer != "conv") << layer.layer;
  }
}

TEST(CompareCut, NamesTheFirstLayerThatDiffers) {
  const CutComparison found = compare(small_net(), "data", 2, 1);
  const std::string difference = describe_difference(found);
  EXPECT_NE(difference.find("the first layer that differs is layer 'data'"), std::string::npos) << difference;
  EXPECT_NE(difference.find("at iteration 1"), std::string::npos) << difference;
}

// The losses hide it: the first is exact, and so small a rate changes the others by nothing.
TEST(CompareCut, FindsLostSumsOfGradientsThatTheLossesHide) {
  set_compute_threads(1);
  const Network network = small_net();
  CutComparison found;
  LocalJob job(2);
  job.run([&](Communicator& communicator) {
    LosingSums losing(communicator);
    const CutComparison compared = compare_cut_training(
        {.network = network,
         .cut = {.strategies = resolve(load_strategy("data", network, 2), network, 2, "data"),
                 .ranks = 2,
                 .rank = communicator.rank()},
         .job = losing,
         .data = [&](const auto& samples) { return drawn_data(network, 0, samples); },
         .iterations = 2,
         .rate = 1e-6});
    if (communicator.rank() == 0) found = compared;
  });
  EXPECT_LT(found.loss_difference(0), first_loss_limit);
  EXPECT_LT(found.loss_difference(1), last_loss_limit);
  const std::string difference = describe_difference(found);
  EXPECT_NE(
      difference.find("though the losses agree: the first layer that differs is layer 'ip' (gradients of "
                      "weights 'ip/"),
      std::string::npos)
      << difference;
  EXPECT_NE(difference.find("where it should be"), std::string::npos) << difference;
}

}  // namespace
}  // namespace cortado
