#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cortado/train/job_trace.h"
#include "cortado/train/trainer.h"
#include "cortado/train/training_curves.h"
#include "cortado/train/training_events.h"
#include "cortado/train/training_folder.h"
#include "cortado/train/training_log.h"

namespace cortado {

// What is written of a training beside its snapshots; an empty name: not that.
struct TrainingFileNames {
  std::string output;       // TrainingFolder; its log is `log`, too
  std::string log;          // TrainingLog
  std::string plot;         // TrainingCurves, at the end
  std::string trace;        // of the last iteration of all ranks, at the end
  std::string tensorboard;  // TrainingEvents
  int64_t histograms = 0;   // TrainingEvents::Options::histogram_interval
};

// Writes these files. All ranks of the job make one and call it; the first rank writes.
class TrainingFiles {
 public:
  // Makes the folder. `snapshot`: that the training goes on from; empty: none. `again`: as of TrainingFolder.
  // The job must outlive it.
  TrainingFiles(TrainingFileNames names, std::string snapshot, Communicator& job, bool again = false);
  // Opens the other files and watches the trainer, which must live until end(). `command` and `inputs`: as of
  // TrainingRun. `solver`: what is run.
  void begin(const std::string& command, std::vector<std::string> inputs, caffe::SolverParameter solver,
             Trainer& trainer);
  // Writes what is written at the end of a training.
  void end();

 private:
  bool first() const { return job_.rank() == 0; }

  TrainingFileNames names_;
  std::string snapshot_;
  Communicator& job_;
  const Trainer* trainer_ = nullptr;  // null: before begin()
  std::unique_ptr<TrainingFolder> folder_;
  std::unique_ptr<TrainingLog> log_;
  TrainingCurves curves_;
  std::unique_ptr<TrainingEvents> events_;
  std::unique_ptr<LastTimeline> last_;
};

}  // namespace cortado
