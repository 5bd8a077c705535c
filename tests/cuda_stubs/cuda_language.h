// A stub: what nvcc declares before a source of the language CUDA, for a check by the host's compiler
// (README.md).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda_runtime_api.h"

#define __host__
#define __device__
#define __global__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
extern const dim3 blockIdx, blockDim, gridDim, threadIdx;

// In place of kernel<<<blocks, threads, shared, stream>>>(arguments...).
template <typename Blocks, typename... Parameters>
void launch(void (*kernel)(Parameters...), Blocks blocks, int threads, size_t shared, cudaStream_t stream,
            Parameters... arguments);
