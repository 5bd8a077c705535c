#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <stdlib.h>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/kernels/select.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/train/trainer.h"

#include "tests/train/small_training.h"

namespace cortado {
namespace {

constexpr const char* ranks_net = R"(name: "dummies"
layer { name: "data" type: "DummyData" top: "data" top: "target"
  dummy_data_param { shape { dim: 8 dim: 3 dim: 6 dim: 6 } shape { dim: 8 dim: 5 }
    data_filler { type: "gaussian" } data_filler { type: "uniform" } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "target" top: "loss" }
)";

class TrainerOnRanks : public testing::SmallTraining {
 protected:
  explicit TrainerOnRanks(const char* net = ranks_net) : SmallTraining(net) {}

  SolverOptions options(int64_t iterations) {
    SolverOptions options = SmallTraining::options(iterations);
    options.update = {.solver = UpdateOptions::Solver::adam, .momentum = 0.9};
    return options;
  }
  // Trains to `iterations`, from the snapshot of iteration `from` when that is not 0.
  void train(Communicator* ranks, int64_t iterations, int64_t from = 0) {
    Trainer trainer(options(iterations), nets(),
                    {.kernels = {}, .communicator = ranks, .restores = from > 0});
    if (from > 0) trainer.restore(snapshot(from));
    StopFlags flags;
    trainer.run(flags);
  }
  std::string bytes(int64_t iteration) const {
    std::ifstream file(snapshot(iteration), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// Ranks that hold everything write the file that one rank writes; one rank goes on where several stopped.
TEST_F(TrainerOnRanks, WritesAndReadsTheSnapshotOfOneRank) {
  train(nullptr, 4);
  const std::string four = bytes(4);
  ASSERT_FALSE(four.empty());
  std::filesystem::remove(snapshot(4));
  LocalJob(3).run([&](Communicator& ranks) { train(&ranks, 2); });
  train(nullptr, 4, 2);
  EXPECT_EQ(bytes(4), four);
  std::filesystem::remove(snapshot(4));
  LocalJob(2).run([&](Communicator& ranks) { train(&ranks, 4, 2); });
  EXPECT_EQ(bytes(4), four);
}

TEST_F(TrainerOnRanks, BeginsAgainWhereNoSnapshotIsSound) {
  train(nullptr, 2);
  const std::string two = bytes(2);
  std::filesystem::remove(snapshot(2));
  std::ofstream(snapshot(1)) << "damaged";
  Trainer trainer(options(2), nets(), {.restores = true});
  EXPECT_THROW(trainer.restore(snapshot(1)), DamagedFile);
  EXPECT_EQ(trainer.restore(snapshot(1), true).path, "");
  StopFlags flags;
  trainer.run(flags);
  EXPECT_TRUE(bytes(2) == two);
}

// cifar10_quick's layers, and those with statistics, in small: 16 samples are 8 blocks.
constexpr const char* reproducible_net = R"(name: "quick"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 16 dim: 3 dim: 12 dim: 12 } shape { dim: 16 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 2 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 pad: 2 kernel_size: 5 weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "relu1" type: "ReLU" bottom: "pool1" top: "pool1" }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 16 pad: 1 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "norm2" type: "BatchNorm" bottom: "conv2" top: "conv2" }
layer { name: "scale2" type: "Scale" bottom: "conv2" top: "conv2" scale_param { bias_term: true } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
  inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
layer { name: "relu3" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

class ReproducibleTrainer : public TrainerOnRanks {
 protected:
  ReproducibleTrainer() : TrainerOnRanks(reproducible_net) {}

  // Trains as TrainerOnRanks::train does and returns the snapshot's bytes.
  std::string trained(int ranks, int threads, const std::string& strategy, int64_t iterations = 20,
                      int64_t from = 0, std::function<void(SolverOptions&)> change = {}) {
    LocalJob(ranks).run([&](Communicator& job) {
      const ComputeThreads computing(threads);
      SolverOptions solver = options(iterations);
      solver.update = {.momentum = 0.9, .weight_decay = 0.004};
      if (change) change(solver);
      Trainer trainer(solver, nets(),
                      {.kernels = reproducible_kernels, .strategy = strategy, .communicator = &job});
      EXPECT_TRUE(trainer.reproducible());
      if (from > 0) trainer.restore(snapshot(from));
      StopFlags flags;
      trainer.run(flags);
    });
    std::string file = bytes(iterations);
    std::filesystem::remove(snapshot(iterations));
    return file;
  }
  std::string refusal(const std::string& strategy, std::function<void(SolverOptions&)> change = {}) {
    try {
      trained(2, 1, strategy, 1, 0, std::move(change));
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(ReproducibleTrainer, WritesTheSameBytesOnAnyNumberOfRanksAndThreads) {
  const std::string one = trained(1, 1, "single");
  ASSERT_FALSE(one.empty());
  EXPECT_NE(one.find("reproducible"), std::string::npos);
  EXPECT_TRUE(trained(1, 2, "single") == one);
  EXPECT_TRUE(trained(2, 1, "data") == one);
  EXPECT_TRUE(trained(2, 2, "data") == one);
  EXPECT_TRUE(trained(3, 1, "data") == one);
  EXPECT_TRUE(trained(4, 2, "owt") == one);
  EXPECT_TRUE(trained(8, 1, "data") == one);
  EXPECT_TRUE(trained(2, 2, "model") == one);
  EXPECT_TRUE(trained(3, 1, "model") == one);
  EXPECT_TRUE(trained(8, 1, "model") == one);
}

TEST_F(ReproducibleTrainer, ClipsTheSameNorm) {
  const auto clip = [](SolverOptions& solver) { solver.clip_gradients = 0.05; };
  EXPECT_TRUE(trained(1, 2, "single", 5, 0, clip) == trained(4, 1, "data", 5, 0, clip));
  EXPECT_NE(refusal("owt", clip).find("reproducible: clip_gradients"), std::string::npos);
}

TEST_F(ReproducibleTrainer, GoesOnOnAnotherNumberOfRanks) {
  const std::string whole = trained(1, 1, "single", 8);
  LocalJob(2).run([&](Communicator& job) {
    SolverOptions solver = options(4);
    solver.update = {.momentum = 0.9, .weight_decay = 0.004};
    Trainer trainer(solver, nets(),
                    {.kernels = reproducible_kernels, .strategy = "data", .communicator = &job});
    StopFlags flags;
    trainer.run(flags);
  });
  EXPECT_TRUE(trained(4, 1, "owt", 8, 4) == whole);
}

TEST_F(ReproducibleTrainer, NamesTheLayerThatCannotBe) {
  EXPECT_NE(refusal("spatial").find("reproducible: layer 'conv1' (Convolution): h2"), std::string::npos);
}

// Takes the folder of the snapshots away after the first iteration.
struct Remover : TrainingObserver {
  explicit Remover(std::filesystem::path folder) : folder(std::move(folder)) {}
  void iteration(const IterationReport&) override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
};

TEST_F(TrainerOnRanks, AllLearnThatASnapshotFailed) {
  std::atomic<int> failed = 0;
  LocalJob(3).run([&](Communicator& ranks) {
    Trainer trainer(options(1), nets(), {.kernels = {}, .communicator = &ranks});
    Remover remover(folder_ / "kept");
    if (ranks.rank() == 0) trainer.watch(remover);
    try {
      StopFlags flags;
      trainer.run(flags);
    } catch (const UserError& error) {
      failed += std::string(error.what()).find("net_iter_1.safetensors") != std::string::npos;
    }
  });
  EXPECT_EQ(failed, 3);
  int refused = 0;
  try {
    train(nullptr, 1);
  } catch (const UserError&) {
    ++refused;
  }
  EXPECT_EQ(refused, 1) << "no folder from the start";
}

}  // namespace
}  // namespace cortado
