#pragma once

#include <cstddef>
#include <cstdint>

#include "cortado/base/bf16.h"
#include "cortado/base/units.h"

// What libraries' products need around them in the memory of a GPU: orders, types, biases and ReLUs.
// `stream`: as Arguments::stream. Each function is there for elements of float and of bf16.
namespace cortado::gpu {

// Matrices of the memory, `count` of them, rows x columns; each is transposed, and its elements are rounded
// to To. With one row or one column: a conversion.
struct Matrices {
  int64_t count, rows, columns;
  Matrices transposed() const { return {count, columns, rows}; }
  int64_t elements() const { return count * rows * columns; }
};
template <typename From, typename To>
void transpose(void* stream, const From* from, To* to, const Matrices& matrices);

// y[row][c] += bias[c] (null: none) and, with `relu`, what is negative becomes 0. What is not finite stays
// so.
template <typename E>
void add_bias(void* stream, E* y, const float* bias, int64_t rows, int64_t columns, bool relu);

// dy[i] = 0 where y[i] is not positive: the gradient in front of a ReLU with output y.
template <typename E>
void mask_gradient(void* stream, E* dy, const E* y, int64_t count);

// totals[c] = the sum of x[row][c] over all rows, summed in double. Scratch: column_scratch().
template <typename E>
void sum_columns(void* stream, const E* x, int64_t rows, int64_t columns, std::byte* scratch, float* totals);
Bytes column_scratch(int64_t rows, int64_t columns);

}  // namespace cortado::gpu
