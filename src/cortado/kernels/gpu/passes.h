#pragma once

#include <span>
#include <type_traits>

#include "cortado/base/element_type.h"
#include "cortado/base/shape.h"
#include "cortado/base/units.h"
#include "cortado/kernels/update.h"

// Passes over arrays in the memory of a GPU, as those of kernels/arrays.h and kernels/update.h in the host's.
// `stream`: as Arguments::stream.
namespace cortado::gpu {

// target = terms[0] + terms[1] + ..., added in that order in float; one term to 64. `target` may be one of
// them. E: float or bf16.
template <typename E>
void sum(void* stream, E* target, std::type_identity_t<std::span<const E* const>> terms, int64_t count);
void copy(void* stream, float* target, const float* source, int64_t count);

// *total = the sum of x^2, in double, in an order that depends on the count alone. `scratch`, on an 8-byte
// boundary: of sum_of_squares_scratch().
void sum_of_squares(void* stream, const float* x, int64_t count, std::byte* scratch, double* total);
Bytes sum_of_squares_scratch();

// update_parameter(); sets `*not_finite`, of the same memory, to 1 where it would return false. `scratch`, on
// an 8-byte boundary: of update_scratch(), for LARS.
void update_parameter(void* stream, const UpdateOptions& options, const UpdateArguments& arguments,
                      const UpdateStep& step, float* not_finite, std::byte* scratch);
Bytes update_scratch();

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
