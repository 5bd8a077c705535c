#pragma once

#include "cortado/device/runtime.h"

#include "tests/kernels/cut_run.h"

namespace cortado::check {

// The task with the types that a network of precision bf16 gives its tensors where all inputs but integers
// (labels, indices) are bf16.
Task in_bf16(const Task& task, const CheckOptions& options);

// Runs in_bf16() of each device's task with the kernel that select_kernel picks among `kernels`, and the
// reference kernel in double on the same values, all passes, once more in place where the kernel allows it. A
// backward pass that reads outputs reads the rounded ones. Results in bf16 may be off by one rounding, 2^-8
// of themselves, and all by tolerance * max(|expected|, root mean square of the expected tensor). With a
// tolerance of 0 the bits are those of the expected value rounded. Also checks that all results are written
// and nothing else is, and that what the kernel denies reading is not read.
// `device`: where kernels compute, over copies of the host's memory; null: the host.
testing::AssertionResult equals_reference_in_bf16(const CutCase& cut, const std::string& kernels = "",
                                                  device::DeviceRuntime* device = nullptr);

}  // namespace cortado::check
