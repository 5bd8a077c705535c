#pragma once

#include <span>

#include "cortado/base/element_type.h"
#include "cortado/base/shape.h"
#include "cortado/kernels/update.h"

// Passes over arrays in the memory of a GPU, as those of kernels/arrays.h and kernels/update.h in the host's.
// `stream`: as Arguments::stream.
namespace cortado::gpu {

// target = terms[0] + terms[1] + ..., added in that order; one term to 64. `target` may be one of them.
void sum(void* stream, float* target, std::span<const float* const> terms, int64_t count);
void copy(void* stream, float* target, const float* source, int64_t count);

// update_parameter(); sets `*not_finite`, of the same memory, to 1 where it would return false. Throws
// UserError for LARS, whose rate depends on sums that the host knows.
void update_parameter(void* stream, const UpdateOptions& options, const UpdateArguments& arguments,
                      const UpdateStep& step, float* not_finite);

// Boxes of tensors. Where the elements of a box lie in two tensors: its axes, slowest first, with the strides
// of both in elements.
struct BoxPlaces {
  int axes = 0;
  int64_t extent[Shape::max_rank] = {}, from[Shape::max_rank] = {}, to[Shape::max_rank] = {};
  int64_t elements = 1;
};

// Copies, or adds, a box. `from`, `to`: its first elements. Elements of other types are converted; sums are
// of floats (of doubles, where one is f64), each rounded to the target's type.
void copy_box(void* stream, const BoxPlaces& places, const void* from, ElementType from_type, void* to,
              ElementType to_type);
void add_box(void* stream, const BoxPlaces& places, const void* from, ElementType from_type, void* to,
             ElementType to_type);
void zero(void* stream, void* memory, int64_t elements, ElementType type);

}  // namespace cortado::gpu
