#pragma once

#include <string>
#include <vector>

#include "cortado/report/curve.h"
#include "cortado/train/observer.h"

namespace cortado {

// Collects the losses and test outputs of a training for a picture.
class TrainingCurves : public TrainingObserver {
 public:
  void iteration(const IterationReport& report) override;
  void test(const TestReport& report) override;
  std::string svg(const std::string& title) const;

 private:
  std::vector<Curve::Point> losses_;
  std::vector<Curve> test_losses_, test_scores_;  // scores: outputs that are no loss (accuracy)
};

}  // namespace cortado
