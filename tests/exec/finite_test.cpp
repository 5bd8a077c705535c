// What is infinite or not a number is found in the run in which it appears, whatever kernels run.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>

#include "cortado/base/compute_threads.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/device/host_view.h"
#include "cortado/exec/executor.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/parallel/strategy.h"

#include "tests/base/part_of.h"
#include "tests/exec/test_device.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();
const Shape finite_images{4, 3, 8, 8};

// Every ReLU of it, and the maximum, may hide what is not a number; the loss reads no data but labels.
Network hiding_net(Phase phase) {
  SourceOptions data;
  data.kind = SourceOptions::Kind::input;
  data.shapes = {finite_images, Shape{4}};
  const auto convolution = [](int outputs) {
    ConvolutionOptions options{.num_output = outputs, .kernel = {3}, .pad = {1}};
    options.weight_filler.type = Filler::Type::msra;
    return std::make_shared<Convolution>(options);
  };
  const auto inner_product = [](int outputs) {
    InnerProductOptions options{.num_output = outputs};
    options.weight_filler.type = Filler::Type::msra;
    return std::make_shared<InnerProduct>(options);
  };
  const auto relu = std::make_shared<Pointwise>(ReluOptions{});
  using testing::declared;
  return testing::built(
      {declared("data", std::make_shared<Source>(data), {}, {"data", "label"}),
       declared("conv1", convolution(4), {"data"}, {"conv1"}), declared("relu1", relu, {"conv1"}, {"conv1"}),
       declared("pool", std::make_shared<Pooling>(PoolingOptions{.kernel = {2}, .stride = {2}, .pad = {}}),
                {"conv1"}, {"pool"}),
       declared("conv2", convolution(5), {"pool"}, {"conv2"}), declared("relu2", relu, {"conv2"}, {"conv2"}),
       declared("ip1", inner_product(6), {"conv2"}, {"ip1"}), declared("relu3", relu, {"ip1"}, {"ip1"}),
       declared("score", inner_product(3), {"ip1"}, {"score"}),
       declared("loss", std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{}), {"score", "label"}, {"loss"})},
      phase);
}

// What is planted, from run 1 on, and what has to be said of it.
struct Plant {
  std::string parameter;  // or
  int sample = -1;
  float value = not_a_number;
  std::string named;
};

struct Way {
  Phase phase = Phase::train;
  std::string kernels;
  bool fuse = true;
  int ranks = 1;
};

void expect_found(const Way& way, const Plant& plant) {
  SCOPED_TRACE(fmt::format("{}, --kernels '{}', {}, {} ranks: {}",
                           way.phase == Phase::train ? "training" : "testing", way.kernels,
                           way.fuse ? "fused" : "not fused", way.ranks, plant.named));
  const Network net = hiding_net(way.phase);
  const Strategy strategy = built_in_strategy("data", net, way.ranks);
  LocalJob(way.ranks).run([&](Communicator& communicator) {
    std::vector<float> data(static_cast<size_t>(finite_images.size())), labels{0, 1, 2, 1};
    for (size_t i = 0; i < data.size(); ++i) data[i] = std::sin(static_cast<float>(i));
    const testing::TestDevice device;
    ParameterStore store(device);
    Compiled compiled = compile(net, {.strategies = resolve(strategy, net, way.ranks, "test"),
                                      .kernels = {.kernels = way.kernels},
                                      .ranks = way.ranks,
                                      .rank = communicator.rank(),
                                      .fuse = way.fuse});
    const BatchPart part = compiled.program.samples().at("data");
    std::vector<float> images;
    const BatchSource source = [&] {
      images = part_of(finite_images, data, part.tops[0]);
      return std::vector<const float*>{images.data(), labels.data() + part.samples.begin};
    };
    Executor executor(net, std::move(compiled), store, {{"data", source}}, {.communicator = &communicator});
    const double before = executor.run(0);
    EXPECT_TRUE(executor.all_finite(before));
    EXPECT_EQ(executor.first_non_finite(), "");
    if (plant.sample >= 0)
      data[static_cast<size_t>(plant.sample * finite_images.count(1) + 70)] = plant.value;
    if (const EntryIndex entry = store.find(plant.parameter))
      device::write(store.device(), store.entries()[entry].value, {&plant.value, 1});
    const double loss = executor.run(1);
    EXPECT_FALSE(executor.all_finite(loss));
    const std::string named = executor.first_non_finite();
    EXPECT_NE(named.find(plant.named), std::string::npos) << named;
  });
}

std::vector<std::string> all_kernels() {
  const Network net = hiding_net(Phase::train);
  const Task task =
      whole_task(net.nodes()[NodeIndex(1)].layer, Phase::train, std::vector<Shape>{finite_images}, 1);
  std::vector<std::string> names{"", "reference", "native", "caffe", fast_math};
  for (const Implementation& implementation : implementations_of(task))
    if (implementation.make(task).kernel) names.push_back(implementation.name);
  return names;
}

const std::vector<Plant> plants = {
    {.parameter = "", .sample = 2, .value = not_a_number, .named = "sample 2 of 'data'"},
    {.parameter = "", .sample = 3, .value = infinity, .named = "sample 3 of 'data'"},
    {.parameter = "conv2/weight", .value = not_a_number, .named = "parameter 'conv2/weight'"},
    {.parameter = "ip1/bias", .value = not_a_number, .named = "parameter 'ip1/bias'"},
    {.parameter = "score/weight", .value = -infinity, .named = "parameter 'score/weight'"}};

TEST(Finite, IsFoundByEveryImplementation) {
  set_compute_threads(1);
  for (const std::string& name : all_kernels())
    for (const bool fuse : {true, false})
      for (const Phase phase : {Phase::train, Phase::test})
        for (const Plant& plant : plants)
          expect_found({.phase = phase, .kernels = name, .fuse = fuse}, plant);
}

TEST(Finite, IsFoundByAllRanks) {
  set_compute_threads(1);
  for (const std::string& name : all_kernels())
    for (const Phase phase : {Phase::train, Phase::test})
      for (const Plant& plant : plants)
        expect_found({.phase = phase, .kernels = name, .fuse = true, .ranks = 2}, plant);
}

// Finite data and weights, and a sum beyond float32.
TEST(Finite, NamesTheLayerWhoseOutputOverflows) {
  for (const float value : {3e38f, -3e38f})
    for (const Phase phase : {Phase::train, Phase::test}) {
      const Network net = hiding_net(phase);
      std::vector<float> data(static_cast<size_t>(finite_images.size()), value), labels{0, 1, 2, 1};
      const testing::TestDevice device;
      ParameterStore store(device);
      Executor executor(net, compile(net), store,
                        {{"data", [&] {
                            return std::vector<const float*>{data.data(), labels.data()};
                          }}});
      EXPECT_FALSE(executor.all_finite(executor.run(0)));
      EXPECT_NE(executor.first_non_finite().find("layer 'conv1"), std::string::npos);
    }
}

// Trains on samples of 3e38 with every weight of conv1 `weight`, and gives what is named; "": nothing found.
std::string found_with(const Network& net, const std::string& kernels, float weight) {
  std::vector<float> data(static_cast<size_t>(finite_images.size()), 3e38f), labels{0, 1, 2, 1};
  const BatchSource source = [&] { return std::vector<const float*>{data.data(), labels.data()}; };
  ParameterStore store;
  Executor executor(net, compile(net, {.kernels = {.kernels = kernels}}), store, {{"data", source}});
  const EntryIndex entry = store.find("conv1/weight");
  store.set(entry, std::vector<float>(static_cast<size_t>(store.entries()[entry].canonical_size()), weight));
  return executor.all_finite(executor.run(0)) ? "" : executor.first_non_finite();
}

// Every sum of conv1 is minus infinity, and every one of them a ReLU makes 0.
TEST(Finite, NamesTheLayerWhoseReluHidesTheOverflow) {
  for (const int threads : {1, 2})
    for (const std::string& name : all_kernels())
      for (const Phase phase : {Phase::train, Phase::test}) {
        set_compute_threads(threads);
        const std::string named = found_with(hiding_net(phase), name, -1);
        EXPECT_NE(named.find("layer 'conv1"), std::string::npos)
            << name << ", " << threads << " threads: " << named;
      }
}

// The negated data and themselves add up to minus infinity; conv1, whose weights are positive, hides it.
TEST(Finite, NamesTheLayerBeforeTheOneThatHidesTheOverflow) {
  SourceOptions data;
  data.kind = SourceOptions::Kind::input;
  data.shapes = {finite_images, Shape{4}};
  using testing::declared;
  const Network net = testing::built(
      {declared("data", std::make_shared<Source>(data), {}, {"data", "label"}),
       declared("sum", std::make_shared<Eltwise>(EltwiseOptions{.coeff = {-1, -1}}), {"data", "data"},
                {"sum"}),
       declared("conv1", std::make_shared<Convolution>(ConvolutionOptions{.num_output = 8, .kernel = {3}}),
                {"sum"}, {"conv1"}),
       declared("relu1", std::make_shared<Pointwise>(ReluOptions{}), {"conv1"}, {"conv1"}),
       declared("score", std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 3}), {"conv1"},
                {"score"}),
       declared("loss", std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{}), {"score", "label"}, {"loss"})});
  for (const int threads : {1, 2})
    for (const std::string& name : all_kernels()) {
      set_compute_threads(threads);
      const std::string named = found_with(net, name, 1);
      EXPECT_NE(named.find("layer 'sum'"), std::string::npos) << name << ", " << threads << ": " << named;
    }
}

}  // namespace
}  // namespace cortado
