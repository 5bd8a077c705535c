#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/api/network.h"

namespace cortado::api {

// What a solver file says most often. Names, defaults and meanings are Caffe's.
struct SolverOptions {
  std::string type = "SGD";  // SGD, Nesterov, AdaGrad, RMSProp, AdaDelta, Adam; LARS
  double base_lr = 0.01;
  std::string lr_policy = "fixed";  // fixed, step, exp, inv, multistep, poly, sigmoid; cosine
  double gamma = 0.1, power = 1;
  int64_t stepsize = 0;
  std::vector<int64_t> stepvalue{};
  double momentum = 0, weight_decay = 0;
  int64_t max_iter = 0;  // where run() ends
  int iter_size = 1;     // batches whose gradients are summed for one update
  double clip_gradients = -1;
  int test_iter = 0;      // batches of a test of the network in phase TEST; 0: there is no test net
  int test_interval = 0;  // iterations between two tests that step() and run() make; 0: none
  bool test_initialization = true;
  int average_loss = 1;
  int snapshot = 0;  // iterations between two snapshots that step() and run() write; 0: none
  std::string snapshot_prefix{};
  std::string snapshot_format = "cortado";  // cortado, caffe or hdf5
  bool snapshot_after_train = false;        // run() writes one at its end
  uint64_t random_seed = 1;
};

// How a network is trained: a solver file of Caffe with the nets that it names. A value.
class Solver {
 public:
  // Throw UserError naming file, line and field.
  static Solver from_file(const std::string& path);
  static Solver from_text(const std::string& text, const std::string& name_in_errors = "solver");
  // The solver's text, or options, with a network in place of one that a text names.
  static Solver from_text(const std::string& text, const Network& network,
                          const std::string& name_in_errors = "solver");
  Solver(const SolverOptions& options, const Network& network);

  // Sets a field of the solver file: set("base_lr", "0.02"), set("type", "Adam"). Throws
  // UserError: unknown field (with the nearest one), a value of another type.
  Solver& set(const std::string& field, const std::string& value);
  // What replaces the file's own: level and stages of the training net's state, batch sizes, data.
  struct Overrides {
    int level = 0;
    std::vector<std::string> stages{};
    int64_t batch = 0, test_batch = 0;
    std::vector<std::string> sources{}, test_sources{};
    std::string snapshot_format{};         // cortado, caffe or hdf5; empty: as the file says
    std::optional<Precision> precision{};  // of all nets; none: that of the Network, else f32
  };
  Solver& set(const Overrides& overrides);

  std::vector<std::string> warnings() const;  // of the solver and its nets, a line each

  struct Impl;
  const Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  explicit Solver(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cortado::api
