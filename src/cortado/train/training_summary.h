#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cortado/train/observer.h"

namespace cortado {

// A table of a training: a row for each test, with how the training went since the row before.
class TrainingSummary : public TrainingObserver {
 public:
  void iteration(const IterationReport& report) override;
  void test(const TestReport& report) override;
  // The columns: iterations done; mean loss, last learning rate and images a second of the iterations since
  // the row before; each output of each test net. What a row does not have is empty. The last row is of the
  // iterations since the last test, where there are any.
  std::string csv() const;

 private:
  // Of iterations since a test.
  struct Since {
    int64_t done = 0;  // number of the iteration after the last one
    int64_t iterations = 0, images = 0;
    double losses = 0, rate = 0;
    Seconds duration;
  };
  struct Row {
    int64_t iteration = 0;
    Since since;
    std::vector<std::pair<std::string, double>> outputs;
  };

  Since since_;
  std::vector<Row> rows_;
};

}  // namespace cortado
