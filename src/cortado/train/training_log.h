#pragma once

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

}  // namespace cortado
