#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// Pointwise convolutions of bf16 tensors by the processor's products of pairs of bf16 numbers.
KernelOffer make_pairs(const Task& task);

}  // namespace cortado
