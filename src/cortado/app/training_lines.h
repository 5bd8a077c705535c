#pragma once

#include <chrono>
#include <string>

#include "cortado/train/observer.h"
#include "cortado/train/solver_options.h"

namespace cortado {

// Prints a training in Caffe's lines, for files and pipes.
class TrainingLines : public TrainingObserver {
 public:
  explicit TrainingLines(const SolverOptions& solver);
  void iteration(const IterationReport& report) override;
  void test_begins(int64_t iteration, int net) override;
  void test(const TestReport& report) override;
  void snapshot(int64_t iteration, const std::string& path) override;

 private:
  using Clock = std::chrono::steady_clock;
  int display_;
  SnapshotFormat format_;
  Clock::time_point last_time_ = Clock::now();
  int64_t last_iteration_ = -1;
};

// A progress bar on one line of a terminal; tests and snapshots stay above it as lines of their own.
class ProgressBar : public TrainingObserver {
 public:
  explicit ProgressBar(int64_t first_iteration) : first_iteration_(first_iteration) {}
  ~ProgressBar() override;
  void iteration(const IterationReport& report) override;
  void test(const TestReport& report) override;
  void snapshot(int64_t iteration, const std::string& path) override;

 private:
  using Clock = std::chrono::steady_clock;
  void print_above(const std::string& line);
  std::string bar(const IterationReport& report) const;

  int64_t first_iteration_;
  Clock::time_point last_drawn_{};
  // Running means: images/s, s/iteration, shares of waiting for batches and for other ranks.
  double rate_ = 0, seconds_ = 0, wait_share_ = 0, exposed_share_ = 0;
  std::string drawn_;
};

// "accuracy = 0.98" lines of a test's or an iteration's outputs, each behind `head` and its number.
std::string output_lines(const std::string& head, const std::vector<OutputValue>& outputs);

}  // namespace cortado
