#include <atomic>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <stdlib.h>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/train/trainer.h"

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

class TrainerOnRanks : public ::testing::Test {
 protected:
  TrainerOnRanks() {
    std::string path = (std::filesystem::temp_directory_path() / "cortado_train_XXXXXX").string();
    folder_ = mkdtemp(path.data());
    std::filesystem::create_directory(folder_ / "kept");
    std::ofstream(folder_ / "net.prototxt") << ranks_net;
    set_compute_threads(1);
  }
  ~TrainerOnRanks() override { std::filesystem::remove_all(folder_); }

  SolverOptions options(int64_t iterations) {
    SolverOptions options;
    options.file = (folder_ / "solver.prototxt").string();
    options.max_iterations = iterations;
    options.update = {.solver = UpdateOptions::Solver::adam, .momentum = 0.9};
    options.snapshot_prefix = (folder_ / "kept" / "net").string();
    options.snapshot_format = SnapshotFormat::cortado;
    return options;
  }
  SolverNets nets() {
    SolverNets nets;
    nets.train.file = read_net((folder_ / "net.prototxt").string());
    nets.train.state.set_phase(caffe::TRAIN);
    return nets;
  }
  // Trains to `iterations`, from the snapshot of iteration `from` when that is not 0.
  void train(Communicator* ranks, int64_t iterations, int64_t from = 0) {
    Trainer trainer(options(iterations), nets(), {.kernels = {}, .communicator = ranks});
    if (from > 0) trainer.restore(snapshot(from));
    StopFlags flags;
    trainer.run(flags);
  }
  std::string snapshot(int64_t iteration) const {
    return (folder_ / "kept" / ("net_iter_" + std::to_string(iteration) + ".safetensors")).string();
  }
  std::string bytes(int64_t iteration) const {
    std::ifstream file(snapshot(iteration), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_;
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
