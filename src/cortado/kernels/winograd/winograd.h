#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Convolutions of 3 x 3 windows, stride 1, on two spatial axes by Winograd's minimal filtering F(2x2, 3x3):
// 2.25 times fewer multiplications than the sum over the windows (Lavin and Gray, "Fast algorithms for
// convolutional neural networks", 2016; formulas in transforms.h). Any padding and cut, alone or with the
// ReLU behind it. Weights lie as those of implicit-gemm. Refuses where that is faster, too.
KernelOffer make_winograd(const Task& task);

// The same where it is possible but slow, e.g. between few channels: for tests and measurements.
KernelOffer make_winograd_of_any_size(const Task& task);

}  // namespace cortado
