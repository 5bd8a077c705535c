// The Executor on a device whose memory the host cannot touch, on any device of the test program.
#include <chrono>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

#include "cortado/base/error.h"
#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/device/host/host_runtime.h"
#include "cortado/device/host_view.h"
#include "cortado/device/runtime.h"
#include "cortado/exec/executor.h"
#include "cortado/layers/filler.h"

#include "tests/exec/test_device.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

using testing::NetBuilder;

const Shape images{2, 4, 6, 6};  // of NetBuilder

Network net() { return NetBuilder().conv("a", "data").relu("a").conv("b", "a").loss("b", "data").build(); }

struct TrainedOnce {
  std::vector<double> losses;
  std::vector<float> weights;
};

TrainedOnce train(device::DeviceRuntime& device) {
  const Network network = net();
  std::vector<float> batch(static_cast<size_t>(images.size()));
  uint64_t iteration = 0;
  const BatchSource source = [&] {
    fill({.type = Filler::Type::gaussian}, Shape{images.size()}, {.seed = 5, .iteration = ++iteration},
         batch.data());
    return std::vector<const float*>{batch.data()};
  };
  ParameterStore store(device);
  Executor executor(network, compile(network), store, {{"data", source}});
  TrainedOnce trained;
  for (uint64_t i = 0; i < 4; ++i)
    trained.losses.push_back(
        executor.run(i, [&](EntryIndex entry) { testing::descend(store, entry, 1e-3f); }));
  trained.weights = store.canonical(store.find("a/weight"));
  return trained;
}

TEST(OnDevices, TrainingGivesTheBitsOfTheHost) {
  const auto emulated = device::make_emulated();
  const TrainedOnce there = train(*emulated), here = train(device::host());
  EXPECT_EQ(there.losses, here.losses);
  EXPECT_EQ(there.weights, here.weights);
  EXPECT_NE(there.losses[0], there.losses[1]);
}

// Batches that can be looked at before they are asked for; a look takes a moment, which an iteration must not
// end in.
struct Ready {
  std::vector<std::vector<float>> batches;
  size_t next = 0;

  explicit Ready(size_t count) : batches(count, std::vector<float>(static_cast<size_t>(images.size()))) {
    for (size_t i = 0; i < count; ++i)
      fill({.type = Filler::Type::gaussian}, Shape{images.size()}, {.seed = 5, .iteration = i},
           batches[i].data());
  }
  BatchSource source() {
    return {[this] { return BatchSource::Tensors{batches[next++].data()}; },
            [this] {
              std::this_thread::sleep_for(std::chrono::milliseconds(20));
              return BatchSource::Coming{{batches[next].data()}, static_cast<int64_t>(next)};
            }};
  }
};

TEST(OnDevices, ABatchIsBroughtNearBeforeItIsAskedFor) {
  constexpr size_t count = 4;
  const auto emulated = device::make_emulated();
  const Network network = net();
  Ready here(count + 1), there(count + 1);
  ParameterStore store_here, store_there(*emulated);
  Executor on_host(network, compile(network), store_here, {{"data", here.source()}});
  Executor on_device(network, compile(network), store_there, {{"data", there.source()}});
  const auto keep = [](EntryIndex) {};  // with updates to come run() does not settle
  for (uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(on_device.run(i, keep), on_host.run(i, keep));
    std::ranges::fill(there.batches[i + 1], 0.0f);  // nobody reads it any more
  }
}

TEST(OnDevices, ABatchThatWasBroughtNearIsForgottenWhenTheReaderIsSetBack) {
  const auto emulated = device::make_emulated();
  const Network network = net();
  Ready ready(3);
  ParameterStore store(*emulated);
  Executor executor(network, compile(network), store, {{"data", ready.source()}});
  const double first = executor.run(0), second = executor.run(1);
  EXPECT_NE(first, second);
  ready.next = 0;
  EXPECT_EQ(executor.run(2), first);
  EXPECT_EQ(executor.run(3), second);
}

TEST(OnDevices, TheBatchInHandIsComputedAgainThoughTheNextIsNear) {
  const auto emulated = device::make_emulated();
  const Network network = net();
  Ready ready(3);
  std::ranges::fill(ready.batches[1], std::numeric_limits<float>::infinity());
  ParameterStore store(*emulated);
  Executor executor(network, compile(network), store, {{"data", ready.source()}});
  EXPECT_TRUE(std::isfinite(executor.run(0)));
  EXPECT_EQ(executor.first_non_finite(), "");
  EXPECT_FALSE(std::isfinite(executor.run(1)));
}

TEST(OnDevices, AGradientIsReadByTheHostFromACopy) {
  const auto emulated = device::make_emulated();
  const Network network = net();
  const std::vector<float> batch(static_cast<size_t>(images.size()), 1.0f);
  ParameterStore store(*emulated);
  Executor executor(network, compile(network), store,
                    {{"data", [&] { return std::vector<const float*>{batch.data()}; }}});
  executor.run(0);
  const auto& entry = store.entries()[store.find("b/weight")];
  const device::HostView gradient(*emulated, entry.gradient, entry.elements);
  EXPECT_TRUE(std::ranges::any_of(gradient.values(), [](float value) { return value != 0; }));
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit(entry.gradient[0] == 0 ? 0 : 1), ::testing::KilledBySignal(SIGSEGV), "");
}

// A kernel runs late, on a thread of the device; its error still ends the iteration, with the layer's name.
TEST(OnDevices, AKernelsErrorEndsTheIteration) {
  const auto emulated = device::make_emulated();
  const Network network = net();
  const std::vector<float> batch(static_cast<size_t>(images.size()), 1.0f);
  ParameterStore store(*emulated);
  Executor executor(network, compile(network), store,
                    {{"data", [&] { return std::vector<const float*>{batch.data()}; }}});
  const auto fails = [&](EntryIndex) { emulated->queue().launch([] { throw UserError("label 7 of 5"); }); };
  EXPECT_THROW(executor.run(0, fails), UserError);
  EXPECT_TRUE(std::isfinite(executor.run(1)));
}

}  // namespace
}  // namespace cortado
