#pragma once

#include <string>

#include "cortado/base/units.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/blas.h"

namespace cortado {

// Convolution, Deconvolution and InnerProduct, each alone or with the ReLU after it, as matrix products.

namespace lowering {

// The three lowerings of a convolution (Caffe con Troll, section 2.1): which axes of the windows are expanded
// in the lowered data (type 1: all, type 2: the last, type 3: none); all others are in the product.
enum class LoweringType { one = 1, two, three };
inline std::string name_of(LoweringType type) { return "lowering-" + std::to_string(static_cast<int>(type)); }
// "lowering-1", on other libraries than OpenBLAS "lowering-1-blis".
inline std::string name_of(LoweringType type, Blas blas) {
  return name_of(type) + (blas == Blas::openblas ? "" : "-" + std::string(name_of(blas)));
}

// How a lowering works through a batch (section 2.2).
struct LoweringOptions {
  int partitions = 0;                // that run at the same time, each on threads / partitions; 0: chosen
  int64_t samples = 0;               // lowered together in a partition, as far as memory allows; 0: chosen
  Bytes memory{int64_t{256} << 20};  // of lowered data, products and sums together
  bool serial = false;               // lower and lift on one thread, as BVLC Caffe does
  Blas blas = Blas::openblas;
};

}  // namespace lowering

}  // namespace cortado
