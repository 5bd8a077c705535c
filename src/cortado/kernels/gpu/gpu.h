#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Kernels that a GPU can run: each is elements of pure functions (gpu/grid.h), launched on Arguments::stream
// or, without one, computed by the processor, which is how they are tested. Tensors are f32, parameters lie
// in the order of files. They read no memory of a device from the host: what the host would refuse, as a
// label that names no class, makes the loss not a number.
#define GPU(name, ...) KernelOffer make_gpu_##name(const Task& task);
#include "cortado/kernels/layer_kernels.def"

}  // namespace cortado
