#pragma once

#include <gtest/gtest.h>
#include <vector>

#include "cortado/kernels/kernel.h"

namespace cortado::check {

// Values of one input: uniform in [low, high), or integers of that range (labels, indices).
struct Values {
  double low = -1, high = 1;
  bool integers = false;
};

// Deterministic data of a check. small_integers fills everything with integers in [-3, 3], whose sums are
// exact in float, so that any two correct kernels agree bitwise (tolerance 0).
enum class DataKind { random, small_integers };
struct CheckOptions {
  DataKind data = DataKind::random;
  std::vector<Values> inputs;   // per input; missing: [-1, 1)
  std::vector<bool> objective;  // outputs that enter the gradient check's objective; missing: all
  uint64_t seed = 1;
};

// Compares `kernel`, made by any implementation for `task`, with the float reference: forward (outputs,
// running statistics), backward_weights and backward, twice over. An element differs by at most tolerance *
// max(|expected|, root mean square of the expected tensor); tolerance 0: equal. Also checks what the kernel
// promises: every element of its outputs and gradients is written (they hold NaN before), nothing is written
// beyond a buffer, no tensor is read that backward_reads() denies, scratch keeps nothing, padding of a
// parameter's own format stays zero, and, where in_place(), the same results over shared memory (outputs and
// inputs only when backward does not read the inputs).
testing::AssertionResult matches_reference(const Task& task, Kernel& kernel, double tolerance,
                                           const CheckOptions& options = {});
inline testing::AssertionResult matches_reference(const Task& task, Kernel& kernel, double tolerance,
                                                  DataKind data) {
  return matches_reference(task, kernel, tolerance, CheckOptions{.data = data});
}

// Checks that what is not finite is carried on: with one element of an input or a parameter replaced by
// `value`, some output is not finite; with one of output gradient 0, some gradient. A few elements of each
// tensor are tried; inputs of integers (labels) and, in training, parameters that are not learned (running
// statistics) are left alone.
testing::AssertionResult carries(const Task& task, Kernel& kernel, float value,
                                 const CheckOptions& options = {});

// Compares the gradients of the double reference kernel with central finite differences of
// sum over outputs of weight * output, for every wanted input and parameter: within 1e-3 of the larger.
// Elements at a kink (one-sided differences that disagree) are passed over; more than 5 % of them fail the
// check.
testing::AssertionResult gradients_match_differences(const Task& task, const CheckOptions& options = {});
testing::AssertionResult gradients_match_differences(const Task& task, KernelOf<double>& kernel,
                                                     const CheckOptions& options = {});

// Layer::input_box of `layer` on random boxes of every output, held against what the whole `task` computes:
// elements outside never change the box's values; when `tight`, the elements on each face of the input box
// do, but on axes that a convolution has whole.
testing::AssertionResult input_boxes_hold(const Layer& layer, const Task& task, bool tight,
                                          const CheckOptions& options = {});
inline testing::AssertionResult input_boxes_hold(const Task& task, bool tight,
                                                 const CheckOptions& options = {}) {
  return input_boxes_hold(task.layer(), task, tight, options);
}

}  // namespace cortado::check
