#include "cortado/exec/executor.h"

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>

#include "cortado/base/error.h"
#include "cortado/layers/filler.h"
#include "cortado/program/held_memory.h"

#include "tests/exec/test_device.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

using testing::NetBuilder;
using testing::random_net;

// Batches of random numbers, another one each iteration.
std::map<std::string, BatchSource> random_source(std::vector<float>& batch) {
  auto iteration = std::make_shared<uint64_t>(0);
  return {{"data", [&batch, iteration] {
             RandomStream stream{.seed = 5, .iteration = ++*iteration};
             fill({.type = Filler::Type::gaussian}, Shape{static_cast<int64_t>(batch.size())}, stream,
                  batch.data());
             return std::vector<const float*>{batch.data()};
           }}};
}

struct Training {
  std::vector<double> losses;
  std::vector<std::vector<float>> weights;  // canonical
};

// A few steps of plain gradient descent.
Training train(const Network& net, const CompileOptions& options, int iterations = 3) {
  std::vector<float> batch(net.tensors()[net.tensor("data")].shape.size());
  const testing::TestDevice device;
  ParameterStore store(device);
  Executor executor(net, compile(net, options), store, random_source(batch));
  Training training;
  for (int i = 0; i < iterations; ++i) {
    training.losses.push_back(
        executor.run(i, [&](EntryIndex index) { testing::descend(store, index, 1e-4f); }));
  }
  for (EntryIndex entry : indices(store.entries())) training.weights.push_back(store.canonical(entry));
  return training;
}

// Nothing is computed, and each step takes at least the time that it is given.
TEST(Executor, WaitsForModelledTimes) {
  const Network net = random_net(3);
  std::vector<float> batch(net.tensors()[net.tensor("data")].shape.size());
  const testing::TestDevice device;
  ParameterStore store(device);
  Compiled compiled = compile(net);
  double given = 0;
  IndexedVector<StepIndex, Seconds>& seconds = compiled.modelled;
  for (const Step& step : compiled.program.steps) {
    seconds.push_back({step.lane == Lane::compute ? 1e-3 * static_cast<double>(seconds.size() % 3) : 1e9});
    if (step.lane == Lane::compute) given += seconds.back().count;
  }
  Executor executor(net, std::move(compiled), store, random_source(batch));
  const auto weights = store.canonical(EntryIndex(0));
  int updates = 0;
  const auto begin = std::chrono::steady_clock::now();
  executor.run(0, [&](EntryIndex) { ++updates; });
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(given, 0.01);
  EXPECT_GE(taken.count(), given);
  EXPECT_EQ(updates, 0);
  EXPECT_EQ(store.canonical(EntryIndex(0)), weights);
}

// Sharing memory, writing in place, passing gradients through and fusing change nothing but speed.
TEST(Executor, GivesTheSameWithAndWithoutSharedMemoryAndFusion) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Network net = random_net(seed);
    Training plain = train(net, {.kernels = {.kernels = "reference"}, .keep_tensors = true, .fuse = false});
    Training planned = train(net, {});
    Training kept = train(net, {.keep_tensors = true});
    EXPECT_EQ(kept.losses, planned.losses);
    EXPECT_EQ(kept.weights, planned.weights);
    ASSERT_EQ(plain.weights.size(), planned.weights.size());
    for (size_t i = 0; i < plain.losses.size(); ++i) {
      EXPECT_NEAR(plain.losses[i], planned.losses[i], 1e-4 * (1 + std::abs(plain.losses[i])));
    }
    for (size_t p = 0; p < plain.weights.size(); ++p) {
      for (size_t k = 0; k < plain.weights[p].size(); ++k) {
        ASSERT_NEAR(plain.weights[p][k], planned.weights[p][k], 2e-4 * (1 + std::abs(plain.weights[p][k])));
      }
    }
  }
}

// Trains with gradients that pass, on the host, by a program that `change` has changed.
Training train_passing(const Network& net, const std::function<void(Program&)>& change = {}) {
  std::vector<float> batch(net.tensors()[net.tensor("data")].shape.size());
  ParameterStore store;
  Compiled compiled = compile(net, {.passing_gradients = true});
  if (change) change(compiled.program);
  Executor executor(net, std::move(compiled), store, random_source(batch));
  Training training;
  for (int i = 0; i < 3; ++i)
    training.losses.push_back(
        executor.run(i, [&](EntryIndex index) { testing::descend(store, index, 1e-4f); }));
  for (EntryIndex entry : indices(store.entries())) training.weights.push_back(store.canonical(entry));
  return training;
}

// Some nets share parameters.
TEST(Executor, GradientsMayPass) {
  if (testing::TestDevice::named()) GTEST_SKIP() << "on the host";
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = random_net(seed);
    const Training kept = train(net, {}), passing = train_passing(net);
    EXPECT_EQ(passing.losses, kept.losses);
    EXPECT_EQ(passing.weights, kept.weights);
  }
}

// The test above would notice a gradient that lives too short: something lies over it before its update.
TEST(Executor, AGradientOverwrittenBeforeItsUpdateGivesOtherWeights) {
  if (testing::TestDevice::named()) GTEST_SKIP() << "on the host";
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  int changed = 0;
  const Training kept = train(net, {}),
                 broken = train_passing(net, [&](Program&program) {
                   for (Work& work : program.works) {
                     if (work.partial_gradients.empty() || work.input_gradients.empty() ||
                         !work.input_gradients[0])
                       continue;
                     const int64_t inputs = program.buffers[work.input_gradients[0].buffer].offset;
                     program.buffers[work.partial_gradients[0].buffer].offset = inputs;
                     ++changed;
                   }
                 });
  EXPECT_EQ(changed, 1);  // the inputs of 'a' are data
  EXPECT_NE(broken.weights, kept.weights);
}

TEST(Executor, APassingGradientHasNoMemoryOfItsOwn) {
  if (testing::TestDevice::named()) GTEST_SKIP() << "on the host";
  NetBuilder layers;
  std::string blob = "data";
  for (int i = 0; i < 8; ++i) {
    const std::string name = "x" + std::to_string(i);
    layers.conv(name, blob).tanh(name, name + "_tanh");
    blob = name + "_tanh";
  }
  const Network net = layers.loss(blob, "data").build();
  std::vector<float> batch(net.tensors()[net.tensor("data")].shape.size());
  ParameterStore store;
  Compiled compiled = compile(net, {.passing_gradients = true});
  const HeldMemory passing = held_memory(compiled.program, net, 1);
  EXPECT_EQ(passing.gradients, Bytes{});
  EXPECT_LT(passing.total(), held_memory(compile(net).program, net, 1).total());
  Executor executor(net, std::move(compiled), store, random_source(batch));
  int updates = 0;
  executor.run(0, [&](EntryIndex entry) {
    ++updates;
    EXPECT_TRUE(store.entries()[entry].gradient_passes);
    EXPECT_NE(store.entries()[entry].gradient, nullptr);
  });
  EXPECT_EQ(updates, 16);
}

TEST(Executor, TrainsTheSameTwice) {
  Network net = random_net(11);
  Training first = train(net, {}), second = train(net, {});
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.weights, second.weights);
}

TEST(Executor, TestNetSharesTheWeightsOfTheTrainNet) {
  NetBuilder builder;
  builder.conv("a", "data").relu("a").loss("a", "data");
  Network train_net = builder.build(), test_net = builder.build(Phase::test);
  std::vector<float> batch(2 * 4 * 6 * 6);
  const testing::TestDevice device;
  ParameterStore store(device);
  Executor trainer(train_net, compile(train_net), store, random_source(batch));
  const auto reference = [&] { return compile(test_net, {.kernels = {.kernels = "reference"}}); };
  Executor tester(test_net, reference(), store, random_source(batch));
  double before = tester.run(0);
  trainer.run(0, [&](EntryIndex index) { testing::descend(store, index, 0.1f); });
  store.refresh();
  Executor again(test_net, reference(), store, random_source(batch));
  EXPECT_NE(before, again.run(0));
}

TEST(Executor, NamesTheFirstLayerThatIsNotFinite) {
  Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  std::vector<float> good(2 * 4 * 6 * 6, 1.0f), bad = good;
  bad[0] = 1e38f;
  int loads = 0;
  const testing::TestDevice device;
  ParameterStore store(device);
  Executor executor(
      net, compile(net), store,
      {{"data", [&] { return std::vector<const float*>{++loads == 2 ? bad.data() : good.data()}; }}});
  EXPECT_TRUE(std::isfinite(executor.run(0)));
  EXPECT_FALSE(std::isfinite(executor.run(1)));
  EXPECT_NE(executor.first_non_finite(), "");
  EXPECT_EQ(loads, 2);  // it looked at the batch in hand
  EXPECT_TRUE(std::isfinite(executor.run(2)));
  EXPECT_EQ(executor.first_non_finite(), "");
}

TEST(Executor, AReaderThatFailsEndsTheIteration) {
  Network net = NetBuilder().conv("a", "data").loss("a", "data").build();
  std::vector<float> batch(2 * 4 * 6 * 6, 1.0f);
  bool broken = true;
  const testing::TestDevice device;
  ParameterStore store(device);
  Executor executor(net, compile(net), store, {{"data", [&]() -> std::vector<const float*> {
                                                  if (broken)
                                                    throw UserError("train_lmdb: record 17 is corrupt");
                                                  return {batch.data()};
                                                }}});
  EXPECT_THROW(executor.run(0), UserError);
  broken = false;
  EXPECT_TRUE(std::isfinite(executor.run(1)));
}

TEST(ParameterStore, RoundTripsThroughTheCanonicalOrder) {
  Network net = NetBuilder().conv("a", "data").loss("a", "data").build();
  std::vector<float> batch(2 * 4 * 6 * 6);
  const testing::TestDevice device;
  ParameterStore store(device);
  Executor executor(net, compile(net), store, random_source(batch));
  const EntryIndex entry = store.find("a/weight");
  ASSERT_TRUE(entry);
  std::vector<float> values = store.canonical(entry);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  store.set(entry, values);
  EXPECT_EQ(store.canonical(entry), values);
}

}  // namespace
}  // namespace cortado
