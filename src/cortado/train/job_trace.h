#pragma once

#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/exec/executor.h"
#include "cortado/report/trace.h"
#include "cortado/train/observer.h"

namespace cortado {

// One iteration of all ranks: `mine` is what this rank's program did. At rank 0; nothing elsewhere. All ranks
// call it.
std::vector<TraceSlice> slices_of_job(const Executor& executor, const Timeline& mine, Communicator& job);

// Keeps the timeline of a training's last iteration (where iter_size is above 1, of its last batch).
class LastTimeline : public TrainingObserver {
 public:
  explicit LastTimeline(const Executor& executor) : executor_(executor) {}
  void iteration(const IterationReport& report) override {
    if (report.updated) timeline_ = executor_.timeline();
  }
  const Timeline& timeline() const { return timeline_; }

 private:
  const Executor& executor_;
  Timeline timeline_;
};

// Writes that iteration as a trace (report/trace.h). All ranks call it; the first one writes.
void write_job_trace(const std::string& path, const Executor& executor, const Timeline& mine,
                     Communicator& job);

}  // namespace cortado
