#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cortado::lowering {

// Libraries of Debian that multiply matrices of float32. oneDNN is linked. OpenBLAS, which takes much memory
// when it is loaded, and BLIS, whose functions have the same names, are loaded when they are first asked for.
enum class Blas { openblas, blis, onednn };

std::string_view name_of(Blas blas);
std::string refusal_of(Blas blas);  // why it cannot be used here; "": it can

// A row-major matrix, its rows `stride` apart.
struct Factor {
  const float* values;
  int64_t stride;
  bool transposed = false;
};

// product = a * b + beta * product, on the compute threads: the library's own or, inside a partition
// (partitions.h), where it uses one, each thread on a share of the product's rows.
void multiply(Blas blas, int64_t rows, int64_t columns, int64_t depth, Factor a, Factor b, float beta,
              float* product, int64_t product_stride);

}  // namespace cortado::lowering
