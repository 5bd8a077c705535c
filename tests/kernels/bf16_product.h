#pragma once

#include "tests/kernels/check.h"

namespace cortado::check {

// A task of a layer of products, perhaps with a ReLU after it, with tensors in bf16 (Task::input_types,
// output_types) run by `kernel`, and the layer alone by the reference in double on the same numbers rounded
// to bf16: source, weights and output gradient, wherever they lie in memory. Compares outputs and all
// gradients, twice over and with either backward step first. Results in bf16 may be off by one rounding, 2^-8
// of themselves, and all by `tolerance` * max(|expected|, root mean square of the expected tensor); tolerance
// 0: bit by bit the expected number, rounded. A ReLU masks by the kernel's own output. Checks what a kernel
// promises as matches_reference() does. `exact_f32`: weights, and a tensor that is f32, are not rounded.
testing::AssertionResult matches_in_bf16(const Task& task, Kernel& kernel, double tolerance,
                                         DataKind data = DataKind::random, bool exact_f32 = false);

// Where `value` at an element of the source, the weights or the bias leaves all outputs finite, or at one of
// the output gradient all gradients: a failure.
testing::AssertionResult carries_in_bf16(const Task& task, Kernel& kernel, float value);

// Where sums of finite numbers that are below those of float leave all outputs finite: a failure.
testing::AssertionResult carries_overflow_in_bf16(const Task& task, Kernel& kernel);

}  // namespace cortado::check
