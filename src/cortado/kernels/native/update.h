#pragma once

#include <cstdint>
#include <span>

#include "cortado/base/bf16.h"

namespace cortado::native {

// Elementwise passes over whole buffers, parallel over the compute threads, each element read and written
// once. Results do not depend on the number of threads. `target` may be one of the operands.

// target = a + b.
void add(float* target, const float* a, const float* b, int64_t count);

// target = terms[0] + terms[1] + ..., added in that order in float and rounded once; at least one term.
void sum(float* target, std::span<const float* const> terms, int64_t count);
void sum(bf16* target, std::span<const bf16* const> terms, int64_t count);

// target = y > 0 ? a : 0 * a: the gradient in front of a ReLU with output y.
void relu_mask(float* target, const float* a, const float* y, int64_t count);
void relu_mask(bf16* target, const bf16* a, const bf16* y, int64_t count);
void relu_mask(bf16* target, const float* a, const float* y, int64_t count);

// Sum of x^2, accumulated in double by blocks of fixed size.
double sum_of_squares(const float* x, int64_t count);

// Index of the first element that is infinite or not a number; -1 when there is none. first_non_finite()
// (base/finite.h) finds the same on the calling thread alone.
int64_t first_non_finite_in_parallel(const float* x, int64_t count);

}  // namespace cortado::native
