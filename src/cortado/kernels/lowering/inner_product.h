#pragma once

#include "cortado/kernels/kernel.h"
#include "cortado/layers/inner_product.h"

namespace cortado::lowering {

// The weight lies in panels in the memory order (D, H, W, C) of the input, so that activations are read as
// they lie and each pass streams the weight once.
KernelOffer make_inner_product(const Task& task, const InnerProductOptions& options);

}  // namespace cortado::lowering
