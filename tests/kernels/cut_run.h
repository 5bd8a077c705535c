#pragma once

#include <string>

#include "cortado/kernels/kernel.h"

#include "tests/kernels/check.h"

namespace cortado::check {

// Of a CutCase: the sum of two parts, rounded to f32, has the bits of the whole.
inline constexpr double same_bits = -1;

// A layer (or chain) and how it is cut. Blocks are balanced: [i*E/P, (i+1)*E/P).
struct CutCase {
  std::vector<LayerPtr> layers;
  std::vector<Shape> inputs;
  int outputs = 1;
  Phase phase = Phase::train;
  CheckOptions data;
  bool frozen = false;      // parameters want no gradient
  bool from_data = false;   // the inputs want no gradient
  bool shared = false;      // Task::canonical_parameters
  double tolerance = 1e-5;  // 0: bitwise; same_bits: in f32, whatever the values
  struct {
    int64_t n = 1, c = 1, d = 1, h = 1, w = 1, r = 1;
  } degrees;
  std::string text() const;
};

Task whole_task(const CutCase& cut);
// The devices' shares of it.
std::vector<Task> device_tasks(const CutCase& cut, const Task& whole);

// Slices of all parameters of a task's layers in order.
std::vector<Box> parameter_boxes(const Task& task);

// Runs the task of every device with the kernel that select_kernel picks, feeds each its slices, sums what is
// to be summed by hand, and compares with the uncut task on the reference kernel: outputs, running
// statistics, gradients. Also checks that the outputs of the devices cover each element once, that replicas
// of a weight have one format, and that no kernel reads what it denies reading or writes beyond a buffer.
testing::AssertionResult cut_equals_whole(const CutCase& cut, const std::string& only);

// The law of reproducible kernels: the same, of devices with so many threads each, against the uncut task on
// the same kernels and one thread.
testing::AssertionResult part_is_part_of_whole(const CutCase& cut, const std::string& kernels, int threads);

}  // namespace cortado::check
