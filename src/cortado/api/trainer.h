#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/api/data.h"
#include "cortado/api/job.h"
#include "cortado/api/layer.h"
#include "cortado/api/net.h"
#include "cortado/api/network.h"
#include "cortado/api/solver.h"
#include "cortado/api/strategy.h"
#include "cortado/api/tensor.h"
#include "cortado/api/weights.h"

namespace cortado::api {

struct TrainerOptions {
  Job job{};
  Strategy strategy{};  // over the ranks of the job
  int threads = 0;      // compute threads of this rank; 0: as many as OpenMP gives the calling thread
  int reader_threads = 1;
  // Where this rank computes: "cpu", "gpu" (its own, by its place among the ranks of its host), "gpu:1", or
  // "emulated", a device for tests. Ranks may name different ones. open_nets are of the CPU alone.
  std::string device = "cpu";
  std::string kernels{};        // only this implementation, or "measured"; empty: the best of all
  bool fast_math = false;       // kernels with larger rounding errors, too
  bool reproducible = false;    // the same bits on any number of ranks and threads; what cannot is refused
  bool keep_tensors = false;    // every tensor and gradient can be read, at the price of their memory
  bool open_nets = false;       // net() and test_net() are there, at the price of memory and speed; one rank
  MakeUserLayer user_layers{};  // makes layers of type Python, one rank; null: as the Solver's Network says
  std::function<void(const std::string&)> notice{};  // a line that is worth knowing; any thread
};

// Throws UserError, with the reason, unless this host has the device (TrainerOptions::device).
void check_device(const std::string& device);

// Asks a training to stop, or to write a snapshot, after the iteration at hand. Any thread, and signal
// handlers, may ask. Copies are the same token.
class StopToken {
 public:
  StopToken();
  void request_stop() const noexcept;
  void request_snapshot() const noexcept;
  bool stop_requested() const noexcept;
  void reset() const noexcept;

  struct Impl;
  Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  std::shared_ptr<Impl> impl_;
};

// One iteration of a training. Times are seconds.
struct Iteration {
  int64_t number = 0;  // from 0
  double loss = 0;
  double smoothed_loss = 0;  // mean of the last average_loss iterations
  double learning_rate = 0;
  int64_t samples = 0;
  double seconds = 0;
  double data_wait = 0, exposed_communication = 0;  // while computing waited for a batch, for messages
  double communication = 0;                         // of all messages, hidden or not
  bool display = false;                             // the solver asks for a line here; `outputs` is filled
  bool updated = true;                              // false: a last look at the loss, without an update
  std::vector<Output> outputs;
};

// One test: means over its batches.
struct TestResult {
  int64_t iteration = 0;  // iterations done before it
  int net = 0;            // of the solver's test nets
  std::vector<Output> outputs;
  std::optional<double> loss;  // where the solver asks for test_compute_loss
  double seconds = 0;
};

// Its functions are called at events of a training, on the thread that trains.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void iteration_begins(int64_t /*iteration*/) {}
  // With TrainerOptions::open_nets: net() has the gradients of the iteration's last batch, and may be given
  // others; the parameters are updated by them next.
  virtual void gradients(int64_t /*iteration*/) {}
  virtual void iteration(const Iteration&) {}
  virtual void test_begins(int64_t /*iteration*/, int /*net*/) {}
  virtual void test(const TestResult&) {}
  virtual void snapshot(int64_t /*iteration*/, const std::string& /*path*/) {}  // at rank 0 alone
};

// Trains a network. Any number of trainers may be in a process, each used by one thread at a time; they do
// not know of each other. On several ranks all ranks make the same calls in the same order. After a call has
// thrown while it trained, the trainer has to be made anew.
class Trainer {
 public:
  // Throws UserError: a field, a net, a source or a strategy that cannot be, or nothing to learn.
  explicit Trainer(const Solver& solver, const Data& data = {}, const TrainerOptions& options = {});
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  // Trains so many iterations, whatever max_iter is, with the tests and snapshots that the solver asks for on
  // the way. False: the token asked to stop. Throws UserError, on all ranks, in the iteration in which
  // something is not finite for the first time, naming the layer.
  bool step(int64_t iterations = 1, const StopToken& stop = {});
  // Trains up to the solver's max_iter, with its last test and snapshot. False: the token asked to stop.
  bool run(const StopToken& stop = {});
  // Tests each test net of the solver.
  std::vector<TestResult> test();

  void observe(Observer& observer);  // which must outlive the trainer

  int64_t iteration() const;  // iterations done
  double loss() const;        // of the last iteration; NaN before the first

  const Network& network() const;  // the trained one, with the shapes that its data have
  // The last batch's values, whole. Losses and outputs are always there, others with
  // TrainerOptions::keep_tensors. Throws UserError naming the tensor: unknown, or not kept. All ranks call
  // it.
  Tensor tensor(const std::string& name) const;
  Tensor gradient(const std::string& name) const;  // of the loss by that tensor

  // A parameter ("conv1/weight"), whole, as Caffe's files have it. Throws UserError naming it: unknown, or
  // another number of values. All ranks call it.
  Tensor parameter(const std::string& name) const;
  void set_parameter(const std::string& name, const std::vector<float>& values);

  PassedOver load_weights(const std::string& path);  // .caffemodel, .h5, .safetensors
  // Writes PREFIX_iter_N in the solver's format; returns the file to restore from.
  std::string snapshot();
  std::string snapshot(const std::string& prefix);
  struct Restored {
    std::string path;   // of what was read: the snapshot, or where that is damaged an earlier one
    std::string fault;  // of the one that was asked for; empty: none
  };
  Restored restore(const std::string& snapshot);

  // With TrainerOptions::open_nets, between the calls of this trainer: its own nets, with its parameters,
  // data and last batch, to be run part by part. They must not outlive the trainer.
  Net net();
  int test_nets() const;
  Net test_net(int index);
  // Updates the parameters by the gradients that net() has for them, as an iteration of step() ends, without
  // counting one.
  void update();

  int64_t skipped_records() const;  // broken ones, each counted once; all ranks call it

  struct Impl;
  Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cortado::api
