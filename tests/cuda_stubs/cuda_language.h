// A stub: what nvcc declares before a source of the language CUDA, for clang's syntax check (README.md).
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

// Before the host's, so that overloads by target tell them apart. CUDA Math API, single and double precision.
__device__ float expf(float);
__device__ float expm1f(float);
__device__ float logf(float);
__device__ float log1pf(float);
__device__ float tanhf(float);
__device__ float fabsf(float);
__device__ float powf(float, float);
__device__ float sqrtf(float);
__device__ double log(double);
__device__ double pow(double, double);
__device__ double sqrt(double);

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda_runtime_api.h"

struct dim3 {
  unsigned x, y, z;
  __host__ __device__ dim3(unsigned x, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
extern const __device__ dim3 blockIdx, blockDim, gridDim, threadIdx;
extern "C" int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr);
extern "C" int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0,
                                           cudaStream_t stream = nullptr);
