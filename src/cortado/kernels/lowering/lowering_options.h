#pragma once

#include <cstdint>

#include "cortado/base/units.h"
#include "cortado/kernels/lowering/blas.h"

namespace cortado::lowering {

// How a lowering works through a batch (Caffe con Troll, section 2.2).
struct LoweringOptions {
  int partitions = 0;                // that run at the same time, each on threads / partitions; 0: chosen
  int64_t samples = 0;               // lowered together in a partition, as far as memory allows; 0: chosen
  Bytes memory{int64_t{256} << 20};  // of lowered data, products and sums together
  bool serial = false;               // lower and lift on one thread, as BVLC Caffe does
  Blas blas = Blas::openblas;
};

}  // namespace cortado::lowering
