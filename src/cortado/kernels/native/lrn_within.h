#pragma once

#include "cortado/kernels/kernel.h"
#include "cortado/layers/lrn.h"

namespace cortado::native {

// LRN over windows of rows and columns within each channel, of 2-D images.
KernelOffer make_lrn_within_channel(const LrnOptions& options, const Task& task);

}  // namespace cortado::native
