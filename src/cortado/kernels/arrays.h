#pragma once

#include <cstdint>
#include <span>

#include "cortado/base/bf16.h"

// Passes over whole arrays in the host's memory, for the Executor, the optimizer and kernels. Parallel over
// the compute threads; each element is read and written once, and results do not depend on the number of
// threads. `target` may be one of the operands, but for convert().
namespace cortado::arrays {

void copy(float* target, const float* source, int64_t count);

// target = a + b.
void add(float* target, const float* a, const float* b, int64_t count);

// target = terms[0] + terms[1] + ..., added in that order in float and rounded once; at least one term.
void sum(float* target, std::span<const float* const> terms, int64_t count);
void sum(bf16* target, std::span<const bf16* const> terms, int64_t count);

// target = source; bf16 is rounded to the nearest.
void convert(const bf16* source, float* target, int64_t count);
void convert(const float* source, bf16* target, int64_t count);

// Sum of x^2, accumulated in double by blocks of fixed size.
double sum_of_squares(const float* x, int64_t count);

// Index of the first element that is infinite or not a number; -1 when there is none. The function of this
// name in base/finite.h finds the same on the calling thread alone.
int64_t first_non_finite(const float* x, int64_t count);

}  // namespace cortado::arrays
