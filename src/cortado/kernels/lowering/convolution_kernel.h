#pragma once

#include "cortado/kernels/kernel.h"
#include "cortado/layers/convolution.h"

namespace cortado::lowering {

KernelOffer make_convolution(const Task& task, const ConvolutionOptions& options);
KernelOffer make_deconvolution(const Task& task, const ConvolutionOptions& options);

}  // namespace cortado::lowering
