#pragma once

#include <span>
#include <type_traits>

#include "cortado/kernels/update.h"

// Passes over arrays in the memory of a GPU, as those of kernels/arrays.h and kernels/update.h in the host's.
// `stream`: as Arguments::stream.
namespace cortado::gpu {

// target = terms[0] + terms[1] + ..., added in that order in float; one term to 64. `target` may be one of
// them. E: float or bf16.
template <typename E>
void sum(void* stream, E* target, std::type_identity_t<std::span<const E* const>> terms, int64_t count);
void copy(void* stream, float* target, const float* source, int64_t count);

// update_parameter(); sets `*not_finite`, of the same memory, to 1 where it would return false. Throws
// UserError for LARS, whose rate depends on sums that the host knows.
void update_parameter(void* stream, const UpdateOptions& options, const UpdateArguments& arguments,
                      const UpdateStep& step, float* not_finite);

}  // namespace cortado::gpu
