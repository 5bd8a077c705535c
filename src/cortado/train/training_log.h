#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "cortado/train/observer.h"

namespace cortado {

// One JSON object a line for each iteration, test and snapshot (docs/reference/output.md).
class TrainingLog : public TrainingObserver {
 public:
  // `append`: the log of a training that goes on. Throws UserError when `path` cannot be written.
  TrainingLog(const std::string& path, bool append);
  void iteration(const IterationReport& report) override;
  void test(const TestReport& report) override;
  void snapshot(int64_t iteration, const std::string& path) override;

 private:
  void write(const std::string& line);

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

// Tells an observer what a log says of the iterations before `end`, and of the tests before them, in order.
// Where the training went back to a snapshot, what it did afterwards counts. Passes over lines within which a
// training was killed. Throws UserError naming a line that is none of a log.
void replay_log(const std::string& path, int64_t end, TrainingObserver& observer);

}  // namespace cortado
