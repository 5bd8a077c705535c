#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string>

#include "cortado/base/compute_threads.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/train/trainer.h"

namespace cortado::testing {

// A training in a folder of its own: net.prototxt, and snapshots kept/net_iter_N.safetensors. One thread.
class SmallTraining : public ::testing::Test {
 protected:
  explicit SmallTraining(const char* net) {
    std::string path = (std::filesystem::temp_directory_path() / "cortado_train_XXXXXX").string();
    folder_ = mkdtemp(path.data());
    std::filesystem::create_directory(folder_ / "kept");
    std::ofstream(folder_ / "net.prototxt") << net;
    set_compute_threads(1);
  }
  ~SmallTraining() override { std::filesystem::remove_all(folder_); }

  SolverOptions options(int64_t iterations) {
    SolverOptions options;
    options.file = (folder_ / "solver.prototxt").string();
    options.max_iterations = iterations;
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
  std::string snapshot(int64_t iteration) const {
    return (folder_ / "kept" / ("net_iter_" + std::to_string(iteration) + ".safetensors")).string();
  }

  std::filesystem::path folder_;
};

}  // namespace cortado::testing
