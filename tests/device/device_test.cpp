// What every device does.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <vector>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/device/host/host_runtime.h"
#include "cortado/device/memory.h"
#include "cortado/device/runtime.h"

namespace cortado::device {
namespace {

std::byte* bytes(std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); }
Bytes floats(int64_t count) { return {count * static_cast<int64_t>(sizeof(float))}; }

class EveryDevice : public ::testing::TestWithParam<bool> {
 protected:
  std::vector<float> values_of(const Memory& memory) {
    std::vector<float> values(static_cast<size_t>(memory.size().count) / sizeof(float), -1.0f);
    device().queue().copy_out(bytes(values), memory.data(), memory.size());
    device().queue().finish();
    return values;
  }
  DeviceRuntime& device() { return GetParam() ? *emulated_ : host(); }

 private:
  std::unique_ptr<DeviceRuntime> emulated_ = make_emulated();
};
INSTANTIATE_TEST_SUITE_P(Devices, EveryDevice, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "emulated" : "host"; });

TEST_P(EveryDevice, GivesZeroedMemoryOnABoundary) {
  const Memory first(floats(1), device()), second(floats(1000), device());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second.floats(128)) % 64, 0u);
  EXPECT_EQ(values_of(second), std::vector<float>(1000));
  EXPECT_EQ(Memory({}, device()).data(), nullptr);
}

TEST_P(EveryDevice, RefusesMoreThanThereIs) { EXPECT_THROW(Memory({int64_t{1} << 47}, device()), UserError); }

TEST_P(EveryDevice, DoesWorkInItsOrder) {
  const Memory memory(floats(100), device());
  std::vector<float> numbers(100);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  Queue& queue = device().queue();
  float* const inside = device().for_kernels(memory.floats());
  queue.copy_in(memory.data(), bytes(numbers), memory.size());
  queue.launch([inside] { std::for_each(inside, inside + 100, [](float& value) { value *= 2; }); });
  queue.fill(memory.floats(floats(50).count), 7, 50);
  const std::vector<float> values = values_of(memory);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[i], i < 50 ? 2.0f * static_cast<float>(i + 1) : 7);
}

TEST_P(EveryDevice, QueuesWaitForEachOther) {
  const Memory memory(floats(1), device());
  const auto copies = device().make_queue();
  const auto filled = device().make_event(), fetched = device().make_event();
  filled->wait();  // not recorded
  std::vector<float> value(1);
  for (int i = 1; i <= 20; ++i) {
    copies->wait(*filled);
    device().queue().wait(*fetched);
    device().queue().fill(memory.floats(), static_cast<float>(i), 1);
    device().queue().record(*filled);
    copies->wait(*filled);
    copies->copy_out(bytes(value), memory.data(), memory.size());
    copies->record(*fetched);
    if (i % 2 == 0) {
      fetched->wait();
    } else {
      while (!fetched->reached()) continue;
    }
    EXPECT_EQ(value[0], static_cast<float>(i));
  }
  copies->finish();
}

TEST_P(EveryDevice, TimesWhatLiesBetweenEvents) {
  const auto before = device().make_event(true), after = device().make_event(true);
  Queue& queue = device().queue();
  for (int i = 0; i < 2; ++i) {
    queue.record(*before);
    queue.launch([] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); });
    queue.record(*after);
    queue.finish();
    EXPECT_GE(after->since(*before).count, 0.003);
    EXPECT_LE(before->since(*after).count, -0.003);
  }
}

TEST_P(EveryDevice, CountsWhatItsMemoryHasTaken) {
  const Bytes before = device().most_taken();
  const Bytes large{int64_t{64} << 20};
  { const Memory one(large, device()), two(large, device()); }
  const Memory three(large, device());
  EXPECT_GE(device().most_taken(), before > large ? before : Bytes{2 * large.count});
  EXPECT_LT(device().most_taken().count, before.count + 3 * large.count);
}

TEST_P(EveryDevice, ThrowsOnWhatALaunchedFunctionThrows) {
  Queue& queue = device().queue();
  const auto run = [&] {
    queue.launch([] { throw UserError("label 7 of 5"); });
    queue.finish();
  };
  EXPECT_THROW(run(), UserError);
  bool ran = false;
  queue.launch([&ran] { ran = true; });
  queue.finish();
  EXPECT_TRUE(ran);
}

TEST_P(EveryDevice, LaunchesWithTheCallersComputeThreads) {
  const int before = compute_threads();
  for (const int threads : {1, 3}) {
    set_compute_threads(threads);
    int seen = 0;
    device().queue().launch([&seen] { seen = compute_threads(); });
    device().queue().finish();
    EXPECT_EQ(seen, threads);
  }
  set_compute_threads(before);
}

TEST_P(EveryDevice, MovesMemoryWithItsOwner) {
  Memory first(floats(10), device());
  std::byte* const data = first.data();
  Memory second = std::move(first);
  EXPECT_EQ(second.data(), data);
  second = Memory(floats(20), device());
  EXPECT_EQ(values_of(second), std::vector<float>(20));
}

}  // namespace
}  // namespace cortado::device
