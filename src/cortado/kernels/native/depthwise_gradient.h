#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado::native {

// `kernel`, made for `task`, but for the weights' gradient of a depthwise 2-D convolution by windows 5 or 7
// wide, which is computed here: vectors hold channels, and registers the sums of a row of taps. For other
// tasks `kernel` itself.
std::unique_ptr<Kernel> with_depthwise_gradient(std::unique_ptr<Kernel> kernel, const Task& task);

}  // namespace cortado::native
