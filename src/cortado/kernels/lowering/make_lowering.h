#pragma once

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/lowering_options.h"
#include "cortado/kernels/lowering/lowering_type.h"

namespace cortado {

// Lower, multiply by BLAS, lift: Convolution and Deconvolution of any stride, padding, dilation, group and
// cut, in bounded memory.
KernelOffer make_lowering(const Task& task, lowering::LoweringType type,
                          const lowering::LoweringOptions& options = {});

}  // namespace cortado
