#pragma once

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_runtime_api.h>
#include <string>
#endif

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/kernels/everywhere.h"

// Sources of this folder are C++ that nvcc compiles, too: the mathematics of a kernel is a function of one
// element, and they say nothing of threads.
namespace cortado::gpu {

#ifdef __CUDACC__
inline constexpr int threads_of_block = 256;

template <typename Element>
__global__ void run_elements(int64_t count, Element element) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) element(i);
}

template <typename Element>
void launch_elements(void* stream, int64_t count, const Element& element) {
  constexpr int64_t most_blocks = int64_t{1} << 20;  // a thread takes several elements beyond them
  const int64_t blocks = (count + threads_of_block - 1) / threads_of_block;
  run_elements<<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), threads_of_block, 0,
                 static_cast<cudaStream_t>(stream)>>>(count, element);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw InternalError(std::string("a kernel starts: ") + cudaGetErrorString(error));
}
#endif

// Calls element(i) for each i in [0, count), in no order: on the GPU whose stream that is (cudaStream_t),
// later; null: on the compute threads, now. `element` is copied; what it points to is memory of that device.
template <typename Element>
void for_each(void* stream, int64_t count, const Element& element) {
  if (count <= 0) return;
  if (stream == nullptr) return parallel_for(count, element);
#ifdef __CUDACC__
  launch_elements(stream, count, element);
#else
  throw InternalError("a stream of a GPU comes from a build with CUDA");
#endif
}

}  // namespace cortado::gpu
