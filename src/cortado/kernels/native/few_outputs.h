#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado::native {

// Whether a task is a convolution in bf16 by 1x1 windows with few outputs (the scores of a segmentation),
// whose gradients are computed here. oneDNN's need scratch memory of twice the image.
bool has_few_outputs(const Task& task);

// `forward`, made for such a task, with these gradients. Its weights are in the canonical order.
std::unique_ptr<Kernel> with_gradients_of_few_outputs(std::unique_ptr<Kernel> forward, const Task& task);

}  // namespace cortado::native
