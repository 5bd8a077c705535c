#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cortado/train/observer.h"
#include "cortado/train/solver_options.h"

namespace cortado {

// Prints a training in Caffe's lines (log_lines.h).
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

// Returns "accuracy = 0.98", "loss = 0.1 (* 1 = 0.1 loss)".
std::string output_text(const OutputValue& output);

}  // namespace cortado
