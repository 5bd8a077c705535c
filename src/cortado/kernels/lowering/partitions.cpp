#include "cortado/kernels/lowering/partitions.h"

#include <cblas.h>

namespace cortado::lowering {

namespace {

CBLAS_TRANSPOSE order(const Factor& factor) { return factor.transposed ? CblasTrans : CblasNoTrans; }

}  // namespace

// OpenBLAS on OpenMP runs on one thread inside a parallel region, whatever its number of threads, and its
// calls may then run at the same time.
void multiply(int64_t rows, int64_t columns, int64_t depth, Factor a, Factor b, float beta, float* product,
              int64_t product_stride) {
  auto multiply_rows = [&](int64_t begin, int64_t end) {
    const float* left = a.values + begin * (a.transposed ? 1 : a.stride);
    cblas_sgemm(CblasRowMajor, order(a), order(b), static_cast<int>(end - begin), static_cast<int>(columns),
                static_cast<int>(depth), 1, left, static_cast<int>(a.stride), b.values,
                static_cast<int>(b.stride), beta, product + begin * product_stride,
                static_cast<int>(product_stride));
  };
  if (rows == 0 || columns == 0) return;
  if (omp_in_parallel()) {
    parallel_ranges(rows, multiply_rows);
  } else {
    multiply_rows(0, rows);
  }
}

}  // namespace cortado::lowering
