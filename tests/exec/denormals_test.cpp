#include "tests/base/denormals.h"

#include <gtest/gtest.h>

#include "cortado/exec/executor.h"
#include "cortado/exec/lane_thread.h"

#include "tests/exec/test_device.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

// The caller's threads compute otherwise before and after.
TEST(Executor, CountsDenormalsAsZero) {
  const Network net = testing::random_net(3);
  std::vector<float> batch(net.tensors()[net.tensor("data")].shape.size());
  const testing::TestDevice device;
  ParameterStore store(device);
  Executor executor(net, compile(net), store,
                    {{"data", [&batch] { return std::vector<const float*>{batch.data()}; }}});
  std::vector<int> threads;
  executor.run(0, [&](EntryIndex) { threads.push_back(testing::threads_that_flush()); });
  ASSERT_FALSE(threads.empty());
  for (const int count : threads) EXPECT_EQ(count, compute_threads());
  EXPECT_EQ(testing::threads_that_flush(), 0);
}

// Sums over ranks are computed there.
TEST(LaneThread, CountsDenormalsAsZero) {
  bool starts = false, moves = false;
  LaneThread::Steps steps{
      .order = {StepIndex(0)},
      .start = [&](StepIndex) { starts = testing::flushes_denormals(); },
      .finished = [&](StepIndex, bool) { return moves = testing::flushes_denormals(), true; },
      .ended = nullptr};
  steps.waits.push_back({});
  steps.waits_before.push_back({});
  steps.carried.push_back(false);
  steps.needed.push_back(0);
  LaneThread lane(std::move(steps));
  lane.start();
  lane.finish();
  EXPECT_TRUE(starts);
  EXPECT_TRUE(moves);
}

}  // namespace
}  // namespace cortado
