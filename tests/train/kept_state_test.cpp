// What ranks keep of a training at any moment is what a snapshot of that iteration has, bit for bit.
#include "cortado/train/kept_state.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "cortado/base/file.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/kernels/select.h"
#include "cortado/train/trainer.h"

#include "tests/train/small_training.h"

namespace cortado {
namespace {

// With statistics that the forward pass writes, and random numbers. 16 samples are 8 blocks.
constexpr const char* kept_net = R"(name: "kept"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 16 dim: 3 dim: 8 dim: 8 } shape { dim: 16 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 2 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 pad: 1 kernel_size: 3 weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "norm1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "ip1" type: "InnerProduct" bottom: "conv1" top: "ip1"
  inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";
constexpr int64_t calm_iterations = 60;

struct Counter : TrainingObserver {
  void iteration(const IterationReport& report) override { done = report.iteration + 1; }
  std::atomic<int64_t> done = 0;
};

class KeptState : public testing::SmallTraining {
 protected:
  KeptState() : SmallTraining(kept_net) {
    std::ofstream(folder_ / "both.json") << R"({"format": "cortado-strategy", "version": 1, "layers":
      {"*": {"n": 4}, "ip1": {"n": 2, "c": 2}, "relu1": {"n": 4}}})";
  }

  SolverOptions solver(int64_t iterations) {
    SolverOptions solver = options(iterations);
    solver.update = {.momentum = 0.9, .weight_decay = 0.004};
    solver.snapshot_after_train = false;
    return solver;
  }
  // Whatever threads of the work there are end with the process.
  void in_a_process(const std::function<void()>& work) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        work();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  void train_calmly() {
    in_a_process([&] {
      SolverOptions calm = solver(calm_iterations);
      calm.snapshot = 1;
      Trainer trainer(calm, nets(), {.kernels = reproducible_kernels});
      StopFlags flags;
      trainer.run(flags);
    });
  }
  // Trains, lets all ranks stand still somewhere after `iterations`, and has those that are `left` write what
  // they have.
  void keep(int ranks, const std::string& strategy, std::vector<int> left, int64_t iterations,
            std::chrono::microseconds later) {
    in_a_process([&] {
      std::vector<std::atomic<Trainer*>> trainers(static_cast<size_t>(ranks));
      Counter counter;
      std::thread job([&] {
        LocalJob(ranks).run([&](Communicator& communicator) {
          const ComputeThreads computing(1);
          Trainer trainer(
              solver(1 << 30), nets(),
              {.kernels = reproducible_kernels, .strategy = strategy, .communicator = &communicator});
          if (communicator.rank() == 0) trainer.watch(counter);
          trainer.keep_iterations();
          if (!trainer.why_not_kept().empty()) throw UserError(trainer.why_not_kept());
          trainers[static_cast<size_t>(communicator.rank())] = &trainer;
          StopFlags flags;
          trainer.run(flags);
        });
      });
      while (counter.done < iterations) std::this_thread::yield();
      std::this_thread::sleep_for(later);
      const int64_t done = counter.done;
      std::shuffle(left.begin(), left.end(), std::mt19937(static_cast<unsigned>(done)));
      int64_t first = 0, last = 1 << 30, agreed = 0;
      for (const int rank : left) {
        const auto held = trainers[static_cast<size_t>(rank)].load()->hold_still().value();
        first = std::max(first, held.first), last = std::min(last, held.last);
        agreed = std::max(agreed, held.agreed);
      }
      const int64_t iteration = std::min(agreed, last);
      if (iteration < std::max(first, done - 1)) throw UserError("an iteration too early");
      std::ofstream parts(folder_ / "parts");
      parts << iteration << "\n";
      for (const int rank : left)
        parts << trainers[static_cast<size_t>(rank)].load()->write_kept(iteration, left) << "\n";
      parts.close();
      _exit(0);
    });
  }
  // The state that was kept is that of the calm training. Returns in how many parts it was.
  int expect_calm_state() {
    std::ifstream parts(folder_ / "parts");
    int64_t iteration = 0;
    parts >> iteration;
    const Network network = DataNetwork(nets().train.file, nets().train.state, {}).network();
    const Snapshot calm = read_snapshot(snapshot(iteration), network, "SGD", 1);
    int count = 0;
    for (std::string part; parts >> part; ++count) {
      const Snapshot kept = read_snapshot(part, network, "SGD", 1);
      EXPECT_EQ(kept.iteration, iteration);
      EXPECT_EQ(kept.positions, calm.positions);
      EXPECT_EQ(kept.reproducible, calm.reproducible);
      for (ParameterIndex p : indices(calm.parameters)) {
        const std::string& name = network.parameters()[p].name;
        EXPECT_TRUE(kept.parameters[p].values == calm.parameters[p].values) << name << " of " << iteration;
        EXPECT_TRUE(kept.history[0][p].values == calm.history[0][p].values) << name << " of " << iteration;
      }
    }
    return count;
  }
  void expect_calm_states(int ranks, const std::string& strategy, const std::vector<int>& left, int parts,
                          int times) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int i = 0; i < times; ++i) {
      keep(ranks, strategy, left, 2 + static_cast<int64_t>(random() % 20),
           std::chrono::microseconds(random() % 4000));
      if (HasFailure()) return;
      EXPECT_EQ(expect_calm_state(), parts);
    }
  }
};

TEST_F(KeptState, OfOneOfTwoRanksIsThatOfACalmTraining) {
  train_calmly();
  expect_calm_states(2, "data", {1}, 1, 12);
}

TEST_F(KeptState, OfSeveralRanksIsPutTogether) {
  train_calmly();
  expect_calm_states(4, (folder_ / "both.json").string(), {1, 2, 3}, 2, 8);
}

TEST_F(KeptState, IsRefusedWithoutAPart) {
  train_calmly();
  keep(4, (folder_ / "both.json").string(), {0, 1}, 3, {});
  int64_t iteration = 0;
  std::string first, second;
  std::ifstream(folder_ / "parts") >> iteration >> first >> second;
  ASSERT_FALSE(second.empty());
  EXPECT_TRUE(is_kept_state(first));
  EXPECT_FALSE(is_kept_state(snapshot(iteration)));
  std::filesystem::remove(second);
  const Network network = DataNetwork(nets().train.file, nets().train.state, {}).network();
  EXPECT_THROW(read_snapshot(first, network, "SGD", 1), DamagedFile);
  // Then the training goes on from the newest snapshot before it.
  EXPECT_EQ(read_sound_snapshot(first, network, "SGD", 1).path, snapshot(iteration - 1));
}

TEST_F(KeptState, IsNoneWhereEachRankHasPartsOfItsOwn) {
  LocalJob(2).run([&](Communicator& communicator) {
    Trainer trainer(solver(2), nets(),
                    {.kernels = reproducible_kernels, .strategy = "model", .communicator = &communicator});
    trainer.keep_iterations();
    EXPECT_NE(trainer.why_not_kept().find("each has parts of parameter '"), std::string::npos);
    EXPECT_FALSE(trainer.hold_still());
    StopFlags flags;
    EXPECT_TRUE(trainer.run(flags));
  });
}

}  // namespace
}  // namespace cortado
