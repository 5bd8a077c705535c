// Snapshots are written while the training goes on.
#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <stdlib.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/train/trainer.h"

#include "tests/train/small_training.h"

namespace cortado {
namespace {

using namespace std::chrono_literals;

constexpr const char* net_text = R"(name: "dummies"
layer { name: "data" type: "DummyData" top: "data" top: "target"
  dummy_data_param { shape { dim: 8 dim: 3 dim: 6 dim: 6 } shape { dim: 8 dim: 5 }
    data_filler { type: "gaussian" } data_filler { type: "uniform" } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "target" top: "loss" }
)";

class BackgroundSnapshot : public testing::SmallTraining {
 protected:
  BackgroundSnapshot() : SmallTraining(net_text) {}

  SolverOptions options(int64_t iterations, int64_t interval) {
    SolverOptions options = SmallTraining::options(iterations);
    options.snapshot = interval;
    return options;
  }
};

// The first snapshot goes into a pipe that nobody reads until the iterations after it have been trained.
struct LateReader : TrainingObserver {
  explicit LateReader(std::string pipe) : pipe(std::move(pipe)) {
    fallback = std::thread([this] {  // so that a training which waits fails and does not hang
      for (int tries = 0; tries < 200 && !reads; ++tries) std::this_thread::sleep_for(100ms);
      read();
    });
  }
  ~LateReader() override {
    fallback.join();
    if (reader.joinable()) reader.join();
  }
  void read() {
    if (reads.exchange(true)) return;
    reader = std::thread([this] {
      std::ifstream file(pipe, std::ios::binary);
      content.assign(std::istreambuf_iterator<char>(file), {});
    });
  }
  void iteration(const IterationReport& report) override {
    events += "i" + std::to_string(report.iteration) + " ";
    if (report.iteration == 3) {
      waited_for = reads.load();
      read();
    }
  }
  void snapshot_complete(const std::string&) override { ++completed; }
  void snapshot(int64_t iteration, const std::string&) override {
    events += "s" + std::to_string(iteration) + " ";
  }
  std::string pipe, content, events;
  std::atomic<bool> reads = false, waited_for = false;
  std::atomic<int> completed = 0;
  std::thread fallback, reader;
};

TEST_F(BackgroundSnapshot, TrainingGoesOnUntilTheNextOne) {
  ASSERT_EQ(mkfifo(snapshot(2).c_str(), 0600), 0);
  std::string content;
  {
    Trainer trainer(options(5, 2), nets(), {});
    LateReader observer(snapshot(2));
    trainer.watch(observer);
    StopFlags flags;
    EXPECT_TRUE(trainer.run(flags));
    EXPECT_FALSE(observer.waited_for) << "the training waited for the snapshot";
    EXPECT_EQ(observer.completed, 3);
    // The second waits for the first; the last is there when the training ends.
    EXPECT_LT(observer.events.find("i3 "), observer.events.find("s2 ")) << observer.events;
    EXPECT_LT(observer.events.find("s2 "), observer.events.find("s4 ")) << observer.events;
    EXPECT_LT(observer.events.find("s4 "), observer.events.find("s5 ")) << observer.events;
    observer.reader.join();
    content = observer.content;
  }
  // What was written late is the state of its iteration.
  std::filesystem::remove(snapshot(2));
  Trainer again(options(2, 2), nets(), {});
  StopFlags flags;
  again.run(flags);
  std::ifstream same(snapshot(2), std::ios::binary);
  EXPECT_EQ(content == std::string(std::istreambuf_iterator<char>(same), {}), true);
  EXPECT_GT(content.size(), 500u);
}

// The snapshot that is asked for fails while the training goes on.
struct Saboteur : TrainingObserver {
  Saboteur(std::filesystem::path folder, StopFlags& flags) : folder(std::move(folder)), flags(flags) {}
  void iteration(const IterationReport& report) override {
    if (report.iteration == 0) std::filesystem::remove_all(folder), flags.snapshot = true;
    if (std::chrono::steady_clock::now() - begin > 30s) flags.stop = true;
  }
  std::filesystem::path folder;
  StopFlags& flags;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

TEST_F(BackgroundSnapshot, ThatFailsEndsTheTrainingOnAllRanks) {
  std::atomic<int> failed = 0;
  LocalJob(3).run([&](Communicator& ranks) {
    Trainer trainer(options(1'000'000'000, 500'000'000), nets(), {.kernels = {}, .communicator = &ranks});
    StopFlags flags;
    Saboteur saboteur(folder_ / "kept", flags);
    if (ranks.rank() == 0) trainer.watch(saboteur);
    try {
      trainer.step(1'000'000'000, flags);
    } catch (const UserError& error) {
      const std::string message = error.what();
      failed += message.find("net_iter_") != std::string::npos && !flags.stop;
    }
  });
  EXPECT_EQ(failed, 3);
}

}  // namespace
}  // namespace cortado
