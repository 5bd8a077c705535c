#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cortado/parallel/strategy.h"
#include "cortado/train/observer.h"
#include "cortado/train/training_curves.h"
#include "cortado/train/training_summary.h"

namespace caffe {
class SolverParameter;
}

namespace cortado {

// Where things lie in the folder of a training; docs/reference/output.md has the whole list.
std::string log_in(const std::string& folder);
// Snapshots have the name that `snapshot_prefix` ends in.
std::string prefix_in(const std::string& folder, const std::string& snapshot_prefix);

// One run of a training, as its folder keeps it.
struct TrainingRun {
  std::string command;   // as it was typed
  std::string snapshot;  // that it goes on from; empty: none
  int64_t first_iteration = 0;
  int ranks = 1;
  std::string net;                  // its name
  std::vector<std::string> inputs;  // files that the run reads, which it leaves as they are
};

// Fills the folder of a training: what was run, how it goes, its picture. Its log and its snapshots are
// written by others. Made at the first rank alone.
class TrainingFolder : public TrainingObserver {
 public:
  // Makes the folder, or takes one that is empty or of a training that has no snapshot yet. Where the
  // training goes on from a `snapshot` that lies in it, takes it with what the training has written so far.
  // Throws UserError that names --output and the folder: something else is there. `again`: by a job that is
  // started again, what is there is its own.
  TrainingFolder(const std::string& folder, const std::string& snapshot, bool again = false);
  ~TrainingFolder();  // where begin() was not called, a folder that it made goes
  TrainingFolder(const TrainingFolder&) = delete;
  TrainingFolder& operator=(const TrainingFolder&) = delete;

  // Writes what is run, and reads of the log what came before.
  void begin(const TrainingRun& run, const caffe::SolverParameter& solver, const Strategy& strategy);
  void iteration(const IterationReport& report) override;
  void test(const TestReport& report) override;
  // Writes the summary and the picture, as tests do from time to time.
  void write_course();

 private:
  using Clock = std::chrono::steady_clock;
  std::string file(const char* name) const;
  void describe(const TrainingRun& run) const;

  std::string folder_, title_;
  bool made_ = false, began_ = false;
  Clock::time_point written_{};
  Clock::duration writing_{};
  TrainingSummary summary_;
  TrainingCurves curves_;
};

}  // namespace cortado
