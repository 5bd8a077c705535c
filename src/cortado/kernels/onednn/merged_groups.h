#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado::onednn {

// `kernel`, made for `task`, a convolution of `groups` groups, but for the gradient of the weights. Between
// few channels oneDNN makes it slowly: most of each vector is empty. It is made here of several groups at a
// time as one, and of the products between channels of two groups nothing is kept. `make` makes the kernel of
// the merged groups. Where merging does not pay, or `make` refuses, `kernel` itself.
std::unique_ptr<Kernel> with_merged_gradient(std::unique_ptr<Kernel> kernel, const Task& task, int64_t groups,
                                             KernelOffer (*make)(const Task&));

}  // namespace cortado::onednn
