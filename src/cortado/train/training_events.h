#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cortado/report/event_file.h"
#include "cortado/train/observer.h"
#include "cortado/train/trainer.h"

namespace cortado {

// Writes a training for TensorBoard (docs/how-to/watching.md). All ranks watch with one, since weights lie on
// all of them; the first rank writes.
class TrainingEvents : public TrainingObserver {
 public:
  struct Options {
    std::string folder;
    int64_t histogram_interval = 0;  // iterations between two histograms of each weight; 0: none
    bool goes_on = false;            // from a snapshot
    bool writes = true;              // the first rank
  };
  // `trainer` must outlive it. Throws UserError naming --tensorboard and the folder or file.
  TrainingEvents(const Options& options, Trainer& trainer);
  void iteration(const IterationReport& report) override;
  void test(const TestReport& report) override;

 private:
  void write_histograms(int64_t iterations_done);

  Trainer& trainer_;
  int64_t histogram_interval_;
  std::unique_ptr<EventFile> file_;  // of the first rank
};

}  // namespace cortado
