#pragma once

#include <string>

#include "cortado/kernels/lowering/blas.h"

namespace cortado::lowering {

// The three lowerings of a convolution (Caffe con Troll, section 2.1): which axes of the windows are expanded
// in the lowered data (type 1: all, type 2: the last, type 3: none); all others are in the product.
enum class LoweringType { one = 1, two, three };
inline std::string name_of(LoweringType type) { return "lowering-" + std::to_string(static_cast<int>(type)); }
// "lowering-1", on other libraries than OpenBLAS "lowering-1-blis".
inline std::string name_of(LoweringType type, Blas blas) {
  return name_of(type) + (blas == Blas::openblas ? "" : "-" + std::string(name_of(blas)));
}

}  // namespace cortado::lowering
