#pragma once

#include <fmt/format.h>
#include <string>

#include "cortado/base/element_type.h"
#include "cortado/kernels/gpu/layouts.h"

// Inner products as cuBLASLt counts matrices; no device and no library is needed.
namespace cortado::cublaslt {

// result (m x n) = a (m x k, or its transpose) * b (k x n, or its transpose) [+ bias of each of m rows],
// dense matrices in the order of columns. Sums are f32.
struct ProductOf {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  ElementType factors = ElementType::f32, result = ElementType::f32;
  bool tf32 = false;  // f32 factors may be rounded to TF32
  bool bias = false;  // of the result's type

  std::string text() const {  // equal for equal products
    return fmt::format("{}x{}x{} {} {} of {} to {} {} {}", m, n, k, transpose_a, transpose_b,
                       name_of(factors), name_of(result), tf32, bias);
  }
};

// y (rows x outputs) = x (rows x summed) * weights, all in the order of rows; `type`: of x, y and the
// factors.
struct InnerProductShape {
  int64_t rows, outputs, channels, space;
  bool transposed;  // weights are summed x outputs, else outputs x summed
  ElementType type;
  bool tf32;
  int64_t summed() const { return channels * space; }
  // Of the input's memory, channels last: each row, to the order of the weights, channels first.
  gpu::Matrices spoken() const { return {rows, space, channels}; }
};

// y, by a = weights and b = x; dx, by a = weights and b = dy; and the weights' gradient, by a = x and b = dy
// or, transposed, the other way round. A matrix in the order of rows is its transpose in that of columns.
inline ProductOf forward_of(const InnerProductShape& s, bool bias) {
  return {s.outputs, s.rows, s.summed(), !s.transposed, false, s.type, s.type, s.tf32, bias};
}
inline ProductOf data_of(const InnerProductShape& s) {
  return {s.summed(), s.rows, s.outputs, s.transposed, false, s.type, s.type, s.tf32, false};
}
inline ProductOf weights_of(const InnerProductShape& s) {
  const int64_t m = s.transposed ? s.outputs : s.summed(), n = s.transposed ? s.summed() : s.outputs;
  return {m, n, s.rows, false, true, s.type, ElementType::f32, s.tf32, false};
}

}  // namespace cortado::cublaslt
