#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Vectorized, parallel kernels of the layers that memory bounds: each tensor is read and written as few times
// as the formulas allow. One function per layer (or chain of layers); each makes the kernel or says why not.

// {BatchNorm}, {BatchNorm, Scale}, {BatchNorm, ReLU} and {BatchNorm, Scale, ReLU} in one kernel.
KernelOffer make_native_batch_norm(const Task& task);
KernelOffer make_native_scale(const Task& task);  // Scale and Bias
KernelOffer make_native_prelu(const Task& task);
// ReLU, ELU, Sigmoid, TanH and the other pointwise functions.
KernelOffer make_native_pointwise(const Task& task);
KernelOffer make_native_dropout(const Task& task);
KernelOffer make_native_pooling(const Task& task);
KernelOffer make_native_global_pooling(const Task& task);  // averages of whole images
KernelOffer make_native_resampling(const Task& task);      // Upsample and Interp, of f32
KernelOffer make_native_lrn(const Task& task);

KernelOffer make_native_softmax(const Task& task);       // along an axis that is contiguous in memory
KernelOffer make_native_softmax_loss(const Task& task);  // the same
KernelOffer make_native_accuracy(const Task& task);      // the same
KernelOffer make_native_concat(const Task& task);
KernelOffer make_native_slice(const Task& task);
KernelOffer make_native_eltwise(const Task& task);  // {Eltwise} and {Eltwise SUM, ReLU}
KernelOffer make_native_axpy(const Task& task);
KernelOffer make_native_reshape(const Task& task);  // Reshape and Flatten
KernelOffer make_native_crop(const Task& task);
KernelOffer make_native_split(const Task& task);

}  // namespace cortado
