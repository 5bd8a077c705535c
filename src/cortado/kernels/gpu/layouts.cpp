#include "cortado/kernels/gpu/layouts.h"

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado::gpu {
namespace {

// Neighbours write neighbouring elements.
template <typename From, typename To>
struct Transposed {
  Matrices of;
  const From* from;
  CORTADO_EVERYWHERE To operator()(int64_t i) const {
    const int64_t line = quotient_of(i, of.rows), row = i - line * of.rows;
    const int64_t matrix = quotient_of(line, of.columns), column = line - matrix * of.columns;
    return rounded<To>(value_of(from[(matrix * of.rows + row) * of.columns + column]));
  }
};

template <typename From, typename To>
struct Converted {
  const From* from;
  CORTADO_EVERYWHERE To operator()(int64_t i) const { return rounded<To>(value_of(from[i])); }
};

template <typename E>
struct BiasedValue {
  const E* y;  // of the column, in the first row
  int64_t columns;
  float bias;
  bool relu;
  CORTADO_EVERYWHERE E operator()(int64_t row) const {
    const float x = value_of(y[row * columns]) + bias;
    return rounded<E>(relu && !(x > 0) ? 0 * x : x);
  }
};
template <typename E>
struct WithBias {
  const E* y;
  const float* bias;
  int64_t columns;
  bool relu;
  CORTADO_EVERYWHERE BiasedValue<E> operator()(int64_t c) const {
    return {y + c, columns, bias ? bias[c] : 0, relu};
  }
};

template <typename E>
struct Masked {
  const E *dy, *y;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    const E gradient = dy[i];
    return value_of(y[i]) > 0 ? gradient : rounded<E>(0 * value_of(gradient));
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
  if (matrices.rows == 1 || matrices.columns == 1)
    for_each_value(stream, matrices.elements(), to, Converted<From, To>{from});
  else
    for_each_value(stream, matrices.elements(), to, Transposed<From, To>{matrices, from});
}

template <typename E>
void add_bias(void* stream, E* y, const float* bias, int64_t rows, int64_t columns, bool relu) {
  for_each_in_columns(stream, Columns<E>{rows, columns, y, columns}, WithBias<E>{y, bias, columns, relu});
}

template <typename E>
void mask_gradient(void* stream, E* dy, const E* y, int64_t count) {
  for_each_value(stream, count, dy, Masked<E>{dy, y});
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
