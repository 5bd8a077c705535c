#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Depthwise 2-D convolutions, a filter for each channel. Vectors hold channels.
KernelOffer make_native_depthwise(const Task& task);

}  // namespace cortado
