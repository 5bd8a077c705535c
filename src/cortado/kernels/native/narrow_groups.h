#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// 2-D convolutions of groups that vectors hold whole: vectors hold channels. Depthwise ones have a filter for
// each channel, narrow groups 4 or 8 channels in and out.
KernelOffer make_native_depthwise(const Task& task);
KernelOffer make_native_narrow_groups(const Task& task);

}  // namespace cortado
