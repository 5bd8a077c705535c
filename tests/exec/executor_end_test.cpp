// An Executor may end at any time: after an error nobody waits for what is under way.
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "cortado/comm/local/communicator.h"
#include "cortado/comm/local/hub.h"

#include "tests/exec/job_run.h"

namespace cortado {
namespace {

// Arrives in the middle of a look that takes long.
class SlowSum : public Transmission {
 public:
  explicit SlowSum(std::unique_ptr<Transmission> sum) : sum_(std::move(sum)) {}
  void start() override { sum_->start(); }
  bool test() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return sum_->test();
  }

 private:
  std::unique_ptr<Transmission> sum_;
};

class SlowCommunicator : public LocalCommunicator {
 public:
  using LocalCommunicator::LocalCommunicator;
  std::unique_ptr<Transmission> allreduce(std::span<const int> group, ElementPointer values,
                                          int64_t count) override {
    return std::make_unique<SlowSum>(LocalCommunicator::allreduce(group, values, count));
  }
};

// Returns how many of its messages may go on after the iteration.
int64_t run_and_end(const Network& net, const NodeStrategies& strategies, Communicator& communicator) {
  const testing::TestDevice device;
  ParameterStore store(device);
  const std::vector<float> data(4 * 3 * 6 * 6, 0.5f);  // of either input
  Executor executor(
      net,
      compile(net, {.strategies = strategies, .ranks = communicator.size(), .rank = communicator.rank()}),
      store, {{"data", [&] { return std::vector<const float*>(2, data.data()); }}},
      {.communicator = &communicator});
  executor.run(0, [](EntryIndex) {});
  return std::ranges::count_if(executor.program().steps, [](const Step& step) { return step.carried; });
}

TEST(Executor, MayEndWhileMessagesAreUnderWay) {
  const ParallelConfig halves = testing::on_all({.n = 2});
  testing::CutNet cut({{4, 3, 6, 6}, {4, 4, 4, 4}});
  cut.add("a", std::make_shared<Convolution>(ConvolutionOptions{.num_output = 4, .kernel = {3, 3}}), "data0",
          halves);
  cut.add("loss", std::make_shared<EuclideanLoss>(), {"a", "data1"}, {"loss"}, halves);
  const Network net = cut.build();
  auto hub = std::make_shared<Hub>(2, std::chrono::seconds(30));
  std::vector<int64_t> carried(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      SlowCommunicator communicator(hub, rank);
      carried[static_cast<size_t>(rank)] = run_and_end(net, cut.strategies(), communicator);
    });
  for (std::thread& rank : ranks) rank.join();
  for (int64_t count : carried) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace cortado
