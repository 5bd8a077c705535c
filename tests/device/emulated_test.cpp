// What the emulated device alone does, so that tests on it find what accelerators do not forgive.
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/device/memory.h"
#include "cortado/device/runtime.h"

namespace cortado::device {
namespace {

class Emulated : public ::testing::Test {
 protected:
  Emulated() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  std::unique_ptr<DeviceRuntime> device_ = make_emulated();
};
using EmulatedDeathTest = Emulated;

TEST_F(EmulatedDeathTest, FaultsWhenTheHostTouchesItsMemory) {
  const Memory memory({64}, *device_);
  EXPECT_EXIT({ memory.floats()[0] = 1; }, ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(exit(memory.floats()[0] == 0 ? 0 : 1), ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(EmulatedDeathTest, FaultsWhenALaunchedFunctionTakesTheHostsAddress) {
  const Memory memory({64}, *device_);
  const auto run = [&] {
    device_->queue().launch([&] { memory.floats()[0] = 1; });
    device_->queue().finish();
  };
  EXPECT_EXIT(run(), ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(EmulatedDeathTest, FaultsWhenWorkIsWaitingOnMemoryThatIsFreed) {
  const auto run = [&] {
    {
      const Memory memory({64}, *device_);
      device_->queue().fill(memory.floats(), 1, 16);
    }
    const Memory other({64}, *device_);
    device_->queue().finish();
  };
  EXPECT_EXIT(run(), ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(EmulatedDeathTest, FaultsBeyondABlock) {
  const Memory memory({4096}, *device_), other({4096}, *device_);
  const auto run = [&] {
    device_->queue().fill(memory.floats(), 1, 1025);
    device_->queue().finish();
  };
  EXPECT_EXIT(run(), ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(Emulated, BeginsWorkOnceSomebodyWaits) {
  bool first = false, second = false;
  device_->queue().launch([&] { first = true; });
  const auto event = device_->make_event();
  device_->queue().record(*event);
  device_->queue().launch([&] { second = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(first);
  event->wait();
  EXPECT_TRUE(first);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(second);
  device_->queue().finish();
  EXPECT_TRUE(second);
}

// Work after a failure is left out, but nobody waits for it in vain.
TEST_F(Emulated, ReachesEventsAfterAFailure) {
  const auto other = device_->make_queue();
  const auto event = device_->make_event();
  bool ran = false;
  device_->queue().launch([] { throw 1; });
  device_->queue().launch([&] { ran = true; });
  device_->queue().record(*event);
  other->wait(*event);
  other->finish();
  EXPECT_FALSE(ran);
  EXPECT_THROW(device_->queue().finish(), int);
}

// As on a GPU: a graph keeps the values that functions took along, and finds memory as it is.
TEST_F(Emulated, ReplaysWhatWasCaptured) {
  const Memory memory({64}, *device_);
  float* const inside = device_->for_kernels(memory.floats());
  Queue& queue = device_->queue();
  float added = 1;
  queue.fill(memory.floats(), 1, 16);
  queue.begin_capture();
  queue.launch([inside, added] { inside[0] = 2 * inside[0] + added; });
  queue.fill(memory.floats() + 1, 7, 1);
  EXPECT_THROW(queue.finish(), InternalError);
  const std::unique_ptr<Graph> graph = queue.end_capture();
  std::vector<float> values(2);
  const auto look = [&] {
    queue.copy_out(reinterpret_cast<std::byte*>(values.data()), memory.data(), {8});
    queue.finish();
    return values;
  };
  EXPECT_EQ(look(), (std::vector<float>{1, 1}));
  added = 100;
  queue.replay(*graph);
  EXPECT_EQ(look(), (std::vector<float>{3, 7}));
  queue.replay(*graph);
  queue.replay(*graph);
  EXPECT_EQ(look()[0], 15);
}

}  // namespace
}  // namespace cortado::device
