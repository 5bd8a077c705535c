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

// Where the elements of `rows` x `columns` are written: those of a row lie side by side.
template <typename E>
struct Columns {
  int64_t rows, columns;
  E* to;
  int64_t stride;  // between rows
};

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

// Each thread has a column, of `tile` columns of its block, and takes rows of it.
template <typename E, typename ValueOf>
__global__ void run_columns(Columns<E> of, int tile, ValueOf value_of_column) {
  const int at_a_time = threads_of_block / tile, slot = static_cast<int>(threadIdx.x) / tile;
  const int64_t column = int64_t{blockIdx.y} * tile + threadIdx.x % tile;
  if (slot >= at_a_time || column >= of.columns) return;
  const auto value = value_of_column(column);
  const int64_t of_block = int64_t{at_a_time} * elements_of_thread;
  for (int64_t first = blockIdx.x * of_block + slot; first < of.rows; first += gridDim.x * of_block) {
    E* const to = of.to + column;
    if (first + (elements_of_thread - 1) * int64_t{at_a_time} < of.rows) {
      E made[elements_of_thread];
#pragma unroll
      for (int k = 0; k < elements_of_thread; ++k) made[k] = value(first + k * at_a_time);
#pragma unroll
      for (int k = 0; k < elements_of_thread; ++k) to[(first + k * at_a_time) * of.stride] = made[k];
    } else {
      for (int64_t row = first; row < of.rows; row += at_a_time) to[row * of.stride] = value(row);
    }
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

template <typename E, typename ValueOf>
void launch_columns(void* stream, const Columns<E>& of, const ValueOf& value_of_column) {
  constexpr int64_t most_blocks = 1 << 14;  // a thread takes more rows beyond them
  const int tile = of.columns < threads_of_block ? static_cast<int>(of.columns) : threads_of_block;
  const int64_t of_block = int64_t{threads_of_block / tile} * elements_of_thread;
  const int64_t tiles = (of.columns + tile - 1) / tile, needed = (of.rows + of_block - 1) / of_block;
  const int64_t blocks = needed * tiles < most_blocks ? needed : (most_blocks + tiles - 1) / tiles;
  run_columns<<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(tiles)), threads_of_block, 0,
                static_cast<cudaStream_t>(stream)>>>(of, tile, value_of_column);
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

template <typename E, typename ValueOf>
struct ColumnElement {
  Columns<E> of;
  ValueOf value_of_column;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t row = i / of.columns, column = i % of.columns;
    of.to[row * of.stride + column] = value_of_column(column)(row);
  }
};

// The same for elements of rows and columns: value = value_of_column(column) is made once for many rows, and
// gives value(row).
template <typename E, typename ValueOf>
void for_each_in_columns(void* stream, const Columns<E>& of, const ValueOf& value_of_column) {
#ifdef __CUDACC__
  constexpr int64_t most_columns = int64_t{1} << 23;  // as many tiles as a grid can have
  if (stream != nullptr && of.rows * of.columns >= fewest_elements && of.columns <= most_columns)
    return launch_columns(stream, of, value_of_column);
#endif
  for_each(stream, of.rows * of.columns, ColumnElement<E, ValueOf>{of, value_of_column});
}

}  // namespace cortado::gpu
