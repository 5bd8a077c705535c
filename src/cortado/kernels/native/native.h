#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Vectorized, parallel kernels of the layers that memory bounds: each tensor is read and written as few times
// as the formulas allow. Each function of layer_kernels.def makes the kernel of a layer, or of a chain of
// layers, or says why not.
#define NATIVE(name, ...) KernelOffer make_native_##name(const Task& task);
#include "cortado/kernels/layer_kernels.def"

}  // namespace cortado
