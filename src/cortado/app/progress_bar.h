#pragma once

#include <chrono>
#include <string>

#include "cortado/app/terminal.h"
#include "cortado/train/observer.h"

namespace cortado {

// A progress bar on one line of a terminal, as wide as the terminal lets it; tests and snapshots stay above
// it as lines of their own.
class ProgressBar : public TrainingObserver {
 public:
  explicit ProgressBar(int64_t first_iteration) : first_iteration_(first_iteration) {}
  void iteration(const IterationReport& report) override;
  void test(const TestReport& report) override;
  void snapshot(int64_t iteration, const std::string& path) override;

 private:
  using Clock = std::chrono::steady_clock;
  std::string bar(const IterationReport& report, int columns) const;

  int64_t first_iteration_;
  Clock::time_point last_drawn_{};
  // Running means: images/s, s/iteration, shares of waiting for batches and for other ranks.
  double rate_ = 0, seconds_ = 0, wait_share_ = 0, exposed_share_ = 0;
  TerminalLine line_;
};

// A bar of `done` of `total`, with what is told beside it, in at most `columns`: what matters least is left
// out first. importance: 0 stays longest.
struct ProgressPart {
  std::string text;
  int importance = 0;
};
std::string progress_text(int64_t done, int64_t total, const std::vector<ProgressPart>& parts, int columns);

}  // namespace cortado
