#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/train/data_network.h"

namespace cortado {

// What one training iteration was.
struct IterationReport {
  int64_t iteration = 0;  // counted from 0
  int64_t max_iterations = 0;
  double loss = 0;           // of this iteration
  double smoothed_loss = 0;  // mean of the last average_loss iterations
  double learning_rate = 0;
  int64_t images = 0;
  // The compute lane stood still for want of a batch, or of what other ranks send.
  Seconds duration, data_wait, exposed_communication;
  Seconds communication;  // of all messages, hidden under computing or not
  bool display = false;   // the solver file asks for a line here; `outputs` is filled
  bool updated = true;    // false: Caffe's closing look at the loss, without an update
  std::vector<OutputValue> outputs;
};

// What one test was: means over its batches.
struct TestReport {
  int64_t iteration = 0;
  int net = 0;
  std::vector<OutputValue> outputs;
  std::optional<double> loss;  // test_compute_loss
  Seconds duration;
};

// Is notified of what a training does. Any number may watch: lines, a progress bar, a log, a picture.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void iteration_begins(int64_t /*iteration*/) {}
  // Of trainers that open their nets: the gradients of the iteration's last batch are there, and weights are
  // updated next.
  virtual void gradients(int64_t /*iteration*/) {}
  virtual void iteration(const IterationReport&) {}
  virtual void test_begins(int64_t /*iteration*/, int /*net*/) {}
  virtual void test(const TestReport&) {}
  // Called at the first rank alone, by the thread that wrote the files, as soon as they are complete.
  virtual void snapshot_complete(const std::string& /*path*/) {}
  // Called after it by the training's own thread, before the next iteration.
  virtual void snapshot(int64_t /*iteration*/, const std::string& /*path*/) {}
};

}  // namespace cortado
