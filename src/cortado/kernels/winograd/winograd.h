#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Convolutions of 3 x 3 (or 5 x 5) windows, stride 1, on two spatial axes by Winograd's minimal filtering
// (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016; formulas in transforms.h). Any
// padding, groups and cut, alone or with the ReLU after it. Weights lie as those of implicit-gemm. They
// refuse where that is faster, too.
//
// Multiplications are fewer than those of the sum over the windows: 2.25 times with F(2x2, 3x3), 4 times with
// F(4x4, 3x3), 2.78 times with F(2x2, 5x5) and 6.25 times with F(4x4, 5x5). Relative to the largest element
// of a result, errors against the sum in double are at most 2e-6, 4e-6, 6e-6 and 3e-5 on uniformly random
// operands, and those of the first three at most twice what direct sums lose: tests hold them to it.
KernelOffer make_winograd(const Task& task);
KernelOffer make_winograd_4x4(const Task& task);
KernelOffer make_winograd_5x5(const Task& task);
KernelOffer make_winograd_4x4_of_5x5(const Task& task);

// The same where it is possible but slow, e.g. between few channels: for tests and measurements.
KernelOffer make_winograd_of_any_size(const Task& task);
KernelOffer make_winograd_4x4_of_any_size(const Task& task);
KernelOffer make_winograd_5x5_of_any_size(const Task& task);
KernelOffer make_winograd_4x4_of_5x5_of_any_size(const Task& task);

}  // namespace cortado
