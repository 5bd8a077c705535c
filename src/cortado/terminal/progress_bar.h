#pragma once

#include <chrono>
#include <string>

#include "cortado/terminal/terminal_line.h"
#include "cortado/train/observer.h"
#include "cortado/train/running_pace.h"

namespace cortado {

// A progress bar on one line of a terminal, as wide as the terminal lets it; tests and snapshots stay above
// it as lines of their own.
class ProgressBar : public TrainingObserver {
 public:
  explicit ProgressBar(int64_t first_iteration) : pace_(first_iteration) {}
  void iteration(const IterationReport& report) override;
  void test(const TestReport& report) override;
  void snapshot(int64_t iteration, const std::string& path) override;

 private:
  using Clock = std::chrono::steady_clock;
  std::string bar(const IterationReport& report, int columns) const;

  RunningPace pace_;
  Clock::time_point last_drawn_{};
  TerminalLine line_;
};

}  // namespace cortado
