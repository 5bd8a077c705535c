// A training stops in the iteration in which something becomes infinite or not a number, on all its ranks.
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <stdlib.h>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/train/trainer.h"

namespace cortado {
namespace {

using Solver = UpdateOptions::Solver;

// `loss`: more of the loss layer; `data`: the filler of the data; `more`: layers between.
std::string dummies_net(const std::string& loss, const std::string& data = "type: \"gaussian\" std: 1",
                        const std::string& more = "") {
  return fmt::format(R"(name: "dummies"
layer {{ name: "data" type: "DummyData" top: "data" top: "target"
  dummy_data_param {{ shape {{ dim: 8 dim: 3 dim: 6 dim: 6 }} shape {{ dim: 8 dim: 5 }}
    data_filler {{ {} }} data_filler {{ type: "uniform" }} }} }}
layer {{ name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param {{ num_output: 4 kernel_size: 3 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "relu" type: "ReLU" bottom: "conv" top: "conv" }}
{}
layer {{ name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param {{ num_output: 5 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "target" top: "loss" {} }}
)",
                     data, more, loss);
}

class FiniteTraining : public ::testing::Test {
 protected:
  FiniteTraining() {
    std::string path = (std::filesystem::temp_directory_path() / "cortado_train_XXXXXX").string();
    folder_ = mkdtemp(path.data());
    set_compute_threads(1);
    options_.file = (folder_ / "solver.prototxt").string();
    options_.max_iterations = 4;
    options_.snapshot_prefix = (folder_ / "net").string();
    options_.snapshot_after_train = false;
    options_.learning_rate.base = 1e-3;
  }
  ~FiniteTraining() override { std::filesystem::remove_all(folder_); }

  // What the ranks complain of, all alike.
  std::string complaint(const std::string& net, int ranks, const std::string& strategy = "data") {
    std::ofstream(folder_ / "net.prototxt") << net;
    std::set<std::string> complaints;
    std::mutex mutex;
    LocalJob(ranks).run([&](Communicator& communicator) {
      SolverNets nets;
      nets.train.file = read_net((folder_ / "net.prototxt").string());
      nets.train.state.set_phase(caffe::TRAIN);
      Trainer trainer(options_, nets, {.kernels = {}, .strategy = strategy, .communicator = &communicator});
      StopFlags flags;
      std::string said = "nothing";
      try {
        trainer.run(flags);
      } catch (const UserError& error) {
        said = error.what();
      }
      std::lock_guard lock(mutex);
      complaints.insert(said);
    });
    EXPECT_EQ(complaints.size(), 1u) << fmt::format("{}", fmt::join(complaints, "\n"));
    return *complaints.begin();
  }

  void expect_complaint(const std::string& net, const std::vector<std::string>& parts) {
    for (const int ranks : {1, 2}) {
      for (const char* strategy : {"data", "model"}) {
        if (ranks == 1 && strategy != std::string("data")) continue;
        const std::string said = complaint(net, ranks, strategy);
        for (const std::string& part : parts)
          EXPECT_NE(said.find(part), std::string::npos)
              << part << " in: " << said << " (" << ranks << " ranks, " << strategy << ")";
      }
    }
  }

  std::filesystem::path folder_;
  SolverOptions options_;
};

TEST_F(FiniteTraining, AFiniteOneEnds) { expect_complaint(dummies_net(""), {"nothing"}); }

// The loss is finite in double, the gradient not in float.
TEST_F(FiniteTraining, StopsAtAGradientThatIsNotFinite) {
  const std::string large = "type: \"gaussian\" std: 1000";
  for (const Solver solver : {Solver::sgd, Solver::nesterov, Solver::adagrad, Solver::rmsprop,
                              Solver::adadelta, Solver::adam, Solver::lars}) {
    const bool plain = solver == Solver::adagrad || solver == Solver::rmsprop;
    options_.update = {.solver = solver, .momentum = plain ? 0 : 0.9};
    expect_complaint(
        dummies_net("loss_weight: 3e38", large),
        {"iteration 0: the first value that is not finite is in the gradient of parameter 'ip/"});
  }
  options_.update = {};
  options_.clip_gradients = 1;
  expect_complaint(dummies_net("loss_weight: 3e38", large),
                   {"iteration 0:", "the gradient of parameter 'ip/"});
  options_.clip_gradients = -1;
  options_.iter_size = 2;
  expect_complaint(dummies_net("loss_weight: 3e38", large),
                   {"iteration 0:", "the gradient of parameter 'ip/"});
}

TEST_F(FiniteTraining, StopsAtWeightsThatOverflow) {
  options_.learning_rate.base = 3e38;
  expect_complaint(dummies_net("loss_weight: 1e5"), {"iteration 0:", "the updated weights", "parameter '"});
}

// The square of a gradient overflows: the weights would stand still for ever.
TEST_F(FiniteTraining, StopsAtAHistoryThatOverflows) {
  options_.update = {.solver = Solver::adagrad};
  expect_complaint(dummies_net("loss_weight: 1e25"), {"iteration 0:", "history of parameter '"});
}

TEST_F(FiniteTraining, StopsAtAnOutputThatNoLossReads) {
  expect_complaint(dummies_net("", "type: \"gaussian\" std: 1",
                               "layer { name: \"log\" type: \"Log\" bottom: \"conv\" top: \"beside\" }"),
                   {"iteration 0:", "layer 'log'"});
}

TEST_F(FiniteTraining, StopsAtDataThatAreNotFinite) {
  expect_complaint(dummies_net("", "type: \"gaussian\" std: 3e38"),
                   {"iteration 0: the loss is", "layer 'data'", "sample ", " of 'data'"});
}

}  // namespace
}  // namespace cortado
