#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Kernels of oneDNN (version 2) on channels-last tensors. Weights lie in the order that the forward pass
// prefers. Each makes the kernel or gives oneDNN's or its own reason for not doing so.
KernelOffer make_onednn_convolution(const Task& task);    // {Convolution} and {Convolution, ReLU}
KernelOffer make_onednn_deconvolution(const Task& task);  // {Deconvolution} and {Deconvolution, ReLU}
KernelOffer make_onednn_inner_product(const Task& task);  // {InnerProduct} and {InnerProduct, ReLU}

}  // namespace cortado
