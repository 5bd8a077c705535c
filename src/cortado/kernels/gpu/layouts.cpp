#include "cortado/kernels/gpu/layouts.h"

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado::gpu {
namespace {

// Neighbours write neighbouring elements.
template <typename From, typename To>
struct TransposeElement {
  Matrices of;
  const From* from;
  To* to;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t row = i % of.rows, column = i / of.rows % of.columns, matrix = i / of.rows / of.columns;
    to[i] = rounded<To>(value_of(from[(matrix * of.rows + row) * of.columns + column]));
  }
};

template <typename E>
struct BiasElement {
  E* y;
  const float* bias;
  int64_t columns;
  bool relu;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const float x = value_of(y[i]) + (bias ? bias[i % columns] : 0);
    y[i] = rounded<E>(relu && !(x > 0) ? 0 * x : x);
  }
};

template <typename E>
struct MaskElement {
  E* dy;
  const E* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    if (!(value_of(y[i]) > 0)) dy[i] = rounded<E>(0 * value_of(dy[i]));
  }
};

template <typename E>
struct ColumnTerm {
  const E* x;
  int64_t columns;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t c) const {
    return value_of(x[row * columns + c]);
  }
};

}  // namespace

template <typename From, typename To>
void transpose(void* stream, const From* from, To* to, const Matrices& matrices) {
  for_each(stream, matrices.elements(), TransposeElement<From, To>{matrices, from, to});
}

template <typename E>
void add_bias(void* stream, E* y, const float* bias, int64_t rows, int64_t columns, bool relu) {
  for_each(stream, rows * columns, BiasElement<E>{y, bias, columns, relu});
}

template <typename E>
void mask_gradient(void* stream, E* dy, const E* y, int64_t count) {
  for_each(stream, count, MaskElement<E>{dy, y});
}

Bytes column_scratch(int64_t rows, int64_t columns) {
  return sum_scratch(rows, columns) + Bytes{columns * int64_t{sizeof(double)}};
}

template <typename E>
void sum_columns(void* stream, const E* x, int64_t rows, int64_t columns, std::byte* scratch, float* totals) {
  auto* const sums = reinterpret_cast<double*>(scratch + sum_scratch(rows, columns).count);
  sum_rows(stream, rows, columns, scratch, sums, ColumnTerm<E>{x, columns});
  for_each(stream, columns, RoundElement{sums, totals});
}

template void transpose(void*, const float*, float*, const Matrices&);
template void transpose(void*, const float*, bf16*, const Matrices&);
template void transpose(void*, const bf16*, float*, const Matrices&);
template void transpose(void*, const bf16*, bf16*, const Matrices&);
template void add_bias(void*, float*, const float*, int64_t, int64_t, bool);
template void add_bias(void*, bf16*, const float*, int64_t, int64_t, bool);
template void mask_gradient(void*, float*, const float*, int64_t);
template void mask_gradient(void*, bf16*, const bf16*, int64_t);
template void sum_columns(void*, const float*, int64_t, int64_t, std::byte*, float*);
template void sum_columns(void*, const bf16*, int64_t, int64_t, std::byte*, float*);

}  // namespace cortado::gpu
