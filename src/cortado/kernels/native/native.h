#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Vectorized, parallel kernels of the layers that memory bounds: each tensor is read and written as few times
// as the formulas allow. One function per layer (or chain of layers); each makes the kernel or says why not.

// {BatchNorm}, {BatchNorm, Scale}, {BatchNorm, ReLU} and {BatchNorm, Scale, ReLU} in one kernel.
KernelOffer make_native_batch_norm(const Task& task);
KernelOffer make_native_scale(const Task& task);  // Scale and Bias
KernelOffer make_native_prelu(const Task& task);
KernelOffer make_native_activation(
    const Task& task);  // ReLU, ELU, Sigmoid, TanH and the other pointwise ones
KernelOffer make_native_dropout(const Task& task);
KernelOffer make_native_pooling(const Task& task);
KernelOffer make_native_lrn(const Task& task);

}  // namespace cortado
