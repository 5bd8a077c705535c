#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Convolution, Deconvolution and InnerProduct, each alone or with the ReLU after it, as matrix products, and
// pointwise convolutions of tensors in bf16, whose numbers it multiplies as floats.
// The lowered matrix is never formed: products read it through pointers into the tensor, and weights live in
// the order the products stream them. Any stride, padding, dilation, group and cut.
KernelOffer make_implicit_gemm(const Task& task);

}  // namespace cortado
