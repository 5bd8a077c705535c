#pragma once

#include "cortado/kernels/onednn/weighted_passes.h"

namespace cortado::onednn {

// The kernel, or a refusal when oneDNN has only its slow reference for a pass. By `of_samples` it makes
// passes over parts of the samples (sample_parts.h) where they are wanted; null: never.
KernelOffer offer_weighted_kernel(const WeightedProblem& problem, const WeightedPasses& passes,
                                  PassPlanner of_samples = nullptr);

}  // namespace cortado::onednn
