#pragma once

#include <cstring>
#include <type_traits>

#include "cortado/base/bf16.h"
#include "cortado/kernels/bf16_vectors.h"
#include "cortado/kernels/lowering/microkernel.h"

namespace cortado::winograd {

using lowering::Vector;
using lowering::vector_lanes;

// Elements of a tensor, f32 or bf16, to and from the floats of a vector; bf16 to the nearest, ties to even.
// The number of lanes in use is a constant where it is all of them.
using AllLanes = std::integral_constant<int64_t, vector_lanes>;

// As many bf16 numbers as a vector has floats.
using HalfWords = VectorOf<uint16_t, vector_lanes>;

inline Vector widened(HalfWords from) {
  const auto bits = __builtin_convertvector(from, VectorOf<uint32_t, vector_lanes>) << 16;
  return reinterpret_cast<Vector>(bits);
}

template <typename Lanes>
Vector get(const float* from, Lanes lanes) {
  Vector vector{};
  std::memcpy(&vector, from, static_cast<size_t>(lanes) * sizeof(float));
  return vector;
}
template <typename Lanes>
Vector get(const bf16* from, Lanes lanes) {
  HalfWords vector{};
  std::memcpy(&vector, from, static_cast<size_t>(lanes) * sizeof(bf16));
  return widened(vector);
}
template <typename Lanes>
void put(float* to, Vector vector, Lanes lanes) {
  std::memcpy(to, &vector, static_cast<size_t>(lanes) * sizeof(float));
}
template <typename Lanes>
void put(bf16* to, Vector vector, Lanes lanes) {
  const HalfWords elements = nearest_bf16(vector);
  std::memcpy(static_cast<void*>(to), &elements, static_cast<size_t>(lanes) * sizeof(bf16));
}

}  // namespace cortado::winograd
