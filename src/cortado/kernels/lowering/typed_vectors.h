#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "cortado/base/bf16.h"
#include "cortado/base/element_type.h"
#include "cortado/kernels/bf16_vectors.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/native/simd.h"

namespace cortado::lowering {

// `tensor`, which holds elements of that type, from one of them on.
template <typename T>
T* from_element(T* tensor, ElementType type, int64_t element) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(tensor) + element * size_of(type));
}

// Vectors of a tensor's elements, whatever their type; in registers they are floats.

inline Vector load(const bf16* from) { return native::load<Vector>(from); }
inline void store(bf16* to, Vector vector) { native::store(to, vector); }

// The first `count` lanes, as in microkernel.h.
inline Vector load_first(const bf16* from, int64_t count) {
  bf16 lanes[vector_lanes] = {};
  std::copy_n(from, count, lanes);
  return load(lanes);
}
inline void store_first(bf16* to, Vector vector, int64_t count) {
  bf16 lanes[vector_lanes];
  store(lanes, vector);
  std::copy_n(lanes, count, to);
}

// Past the caches; `to` is a multiple of a vector's size in memory.
inline void stream(float* to, Vector vector) { native::stream(to, vector); }
inline void stream(bf16* to, Vector vector) { native::stream(to, native::narrowed(vector)); }

// A constant number of elements as floats.
template <int count>
void widen_few(const float* from, float* to) {
  std::memcpy(to, from, count * sizeof(float));
}
template <int count>
void widen_few(const bf16* from, float* to) {
  constexpr int64_t lanes = std::bit_ceil(static_cast<unsigned>(count));
  bf16 narrow[lanes] = {};
  std::copy_n(from, count, narrow);
  const auto wide = native::load<VectorOf<float, lanes>>(narrow);
  std::memcpy(to, &wide, count * sizeof(float));
}

// `count` elements as floats.
template <typename E>
void widen(const E* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + vector_lanes <= count; i += vector_lanes) store(to + i, load(from + i));
  if (i < count) store_first(to + i, load_first(from + i, count - i), count - i);
}

}  // namespace cortado::lowering
