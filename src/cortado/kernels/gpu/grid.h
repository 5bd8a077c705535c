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

// A thread computes several elements before it writes them, so that their loads are under way at a time.
inline constexpr int elements_of_thread = 8;
inline constexpr int64_t fewest_elements = int64_t{1}
                                           << 20;  // fewer: all threads of a large GPU take one each

template <typename E, typename Value>
__global__ void run_values(int64_t count, E* to, Value value) {
  const int64_t first = int64_t{blockIdx.x} * (threads_of_block * elements_of_thread) + threadIdx.x;
  if (first + (elements_of_thread - 1) * threads_of_block < count) {
    E made[elements_of_thread];
#pragma unroll
    for (int k = 0; k < elements_of_thread; ++k) made[k] = value(first + k * threads_of_block);
#pragma unroll
    for (int k = 0; k < elements_of_thread; ++k) to[first + k * threads_of_block] = made[k];
  } else {
    for (int64_t i = first; i < count; i += threads_of_block) to[i] = value(i);
  }
}

inline void check_launch() {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw InternalError(std::string("a kernel starts: ") + cudaGetErrorString(error));
}

template <typename Element>
void launch_elements(void* stream, int64_t count, const Element& element) {
  constexpr int64_t most_blocks = int64_t{1} << 20;  // a thread takes several elements beyond them
  const int64_t blocks = (count + threads_of_block - 1) / threads_of_block;
  run_elements<<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), threads_of_block, 0,
                 static_cast<cudaStream_t>(stream)>>>(count, element);
  check_launch();
}

template <typename E, typename Value>
void launch_values(void* stream, int64_t count, E* to, const Value& value) {
  constexpr int64_t of_block = threads_of_block * elements_of_thread;
  run_values<<<static_cast<unsigned>((count + of_block - 1) / of_block), threads_of_block, 0,
               static_cast<cudaStream_t>(stream)>>>(count, to, value);
  check_launch();
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

template <typename E, typename Value>
struct ValueElement {
  E* to;
  Value value;
  CORTADO_EVERYWHERE void operator()(int64_t i) const { to[i] = value(i); }
};

// to[i] = value(i) for each i in [0, count), as for_each() does. Of `to`, value(i) may read element i alone.
template <typename E, typename Value>
void for_each_value(void* stream, int64_t count, E* to, const Value& value) {
#ifdef __CUDACC__
  if (stream != nullptr && count >= fewest_elements) return launch_values(stream, count, to, value);
#endif
  for_each(stream, count, ValueElement<E, Value>{to, value});
}

}  // namespace cortado::gpu
