#pragma once

#include <limits>

#include "cortado/api/impl/reader.h"
#include "cortado/api/trainer.h"
#include "cortado/auto/job_cut.h"
#include "cortado/exec/rank_device.h"
#include "cortado/train/trainer.h"

namespace cortado::api {

struct StopToken::Impl {
  StopFlags flags;
};

// Passes what the inner trainer reports on to the observers of the public face.
class Observers : public TrainingObserver {
 public:
  void add(Observer& observer) { observers_.push_back(&observer); }
  double last_loss() const { return last_loss_; }

  void iteration_begins(int64_t iteration) override;
  void gradients(int64_t iteration) override;
  void iteration(const IterationReport& report) override;
  void test_begins(int64_t iteration, int net) override;
  void test(const TestReport& report) override;
  void snapshot(int64_t iteration, const std::string& path) override;

 private:
  std::vector<Observer*> observers_;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
};

struct Trainer::Impl {
  Impl(const Solver& solver, const Data& data, const TrainerOptions& options);

  TrainerOptions options;
  RankDevice device;  // before what has memory of it
  DataReaders readers;
  Observers observers;
  std::unique_ptr<cortado::Trainer> trainer;  // after what it reads from and calls: it ends first
  Network network;

  Communicator& ranks() const;
  Tensor whole(const std::string& name, std::span<const float> own, const std::optional<Box>& box) const;
  bool keeps_tensors() const { return options.keep_tensors || options.open_nets; }
  void require_open_nets() const;
  // Throws that the tensor's memory holds something else by now.
  [[noreturn]] void refuse(const std::string& tensor) const;

 private:
  JobCut cut() const;
  std::unique_ptr<cortado::Trainer> make(const Solver& solver);
  cortado::Strategy strategy_for(const cortado::Network& net, int history) const;
};

}  // namespace cortado::api
