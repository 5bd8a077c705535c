#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef __AVX__
#include <immintrin.h>
#endif

#include "cortado/base/bf16.h"

namespace cortado::native {

// Eight floats, or the one float of a remainder: kernels write each loop body once, for both
// (docs/explanation/kernels.md). Arithmetic, comparison and ?: are the compiler's own on either type.
using floats = float __attribute__((vector_size(32)));
using ints = int32_t __attribute__((vector_size(32)));
using uints = uint32_t __attribute__((vector_size(32)));
inline constexpr int64_t lanes = 8;

template <typename V>
inline constexpr int64_t lanes_of = sizeof(V) / sizeof(float);
// The integer type as wide as V; comparisons of V can be kept in it.
template <typename V>
using ints_of = std::conditional_t<std::is_same_v<V, float>, int32_t, ints>;

template <typename V>
inline V load(const float* address) {
  V value;
  std::memcpy(&value, address, sizeof(V));
  return value;
}

// bf16 in memory, float in registers.
template <typename V>
inline V load(const bf16* address) {
  if constexpr (std::is_same_v<V, float>) {
    return to_float(*address);
  } else {
#ifdef __AVX2__
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(address)));
    return reinterpret_cast<V>(_mm256_slli_epi32(wide, 16));
#else
    V value;
    for (int64_t lane = 0; lane < lanes; ++lane) value[lane] = to_float(address[lane]);
    return value;
#endif
  }
}

template <typename V>
inline V splat(float value) {
  return value - V{};
}

// Stores below this size are worth keeping in the last-level cache for the next layer; larger tensors are
// written past the caches, which saves reading the lines that are overwritten.
inline constexpr int64_t streaming_bytes = int64_t{24} << 20;

// Whether a tensor of `count` floats is written past the caches: large, and every group of lanes aligned
// (`row`: elements between the starts of rows that are walked by lanes).
template <typename E>
inline bool wants_streaming(const E* address, int64_t count, int64_t row = lanes) {
  return count * int64_t{sizeof(E)} >= streaming_bytes && row % lanes == 0 &&
         reinterpret_cast<uintptr_t>(address) % (lanes * sizeof(E)) == 0;
}

template <bool streaming, typename V>
inline void store(float* address, V value) {
#ifdef __AVX__
  if constexpr (streaming && std::is_same_v<V, floats>) {
    _mm256_stream_ps(address, reinterpret_cast<__m256>(value));
    return;
  }
#endif
  std::memcpy(address, &value, sizeof(V));
}
template <typename V>
inline void store(float* address, V value) {
  store<false>(address, value);
}

// Eight floats, each to the nearest bf16, ties to even. AVX-512's instruction takes numbers below the normal
// ones, 2^-126, for zeros.
#ifdef __AVX2__
inline __m128i narrowed(floats value) {
  const __m256 v = reinterpret_cast<__m256>(value);
#if defined(__AVX512BF16__) && defined(__AVX512VL__)
  return reinterpret_cast<__m128i>(_mm256_cvtneps_pbh(v));
#else
  const __m256i bits = _mm256_castps_si256(v),
                odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i near = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i no_number = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(near, quiet, no_number), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
#endif
}
#endif

template <bool streaming, typename V>
inline void store(bf16* address, V value) {
  if constexpr (std::is_same_v<V, float>) {
    *address = to_bf16(value);
  } else {
#ifdef __AVX2__
    if constexpr (streaming) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(address), narrowed(value));
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(address), narrowed(value));
    }
#else
    for (int64_t lane = 0; lane < lanes; ++lane) address[lane] = to_bf16(value[lane]);
#endif
  }
}
template <typename V>
inline void store(bf16* address, V value) {
  store<false>(address, value);
}

// Orders streaming stores before whatever the thread does next; each thread calls it after its last one.
inline void finish_streaming() {
#ifdef __AVX__
  _mm_sfence();
#endif
}

// Upper halves of the 64-bit products.
inline uints multiply_high(uints a, uint32_t b) {
#ifdef __AVX2__
  const __m256i factor = _mm256_set1_epi32(static_cast<int32_t>(b)), both = reinterpret_cast<__m256i>(a);
  const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(both, factor), 32);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(both, 32), factor);
  return reinterpret_cast<uints>(_mm256_blend_epi32(even, odd, 0xAA));
#else
  for (int64_t lane = 0; lane < lanes; ++lane) a[lane] = static_cast<uint32_t>(uint64_t{a[lane]} * b >> 32);
  return a;
#endif
}

// Eight bytes as ints, and back (values in [0, 256)).
inline ints widen(const uint8_t* bytes) {
#ifdef __AVX2__
  int64_t packed;
  std::memcpy(&packed, bytes, sizeof(packed));
  return reinterpret_cast<ints>(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(packed)));
#else
  ints wide;
  for (int64_t lane = 0; lane < lanes; ++lane) wide[lane] = bytes[lane];
  return wide;
#endif
}
inline void narrow(uint8_t* bytes, ints wide) {
#ifdef __AVX2__
  const __m256i lowest = _mm256_set1_epi32(0x0C080400);
  const __m256i packed = _mm256_shuffle_epi8(reinterpret_cast<__m256i>(wide), lowest);
  const int64_t both = _mm_cvtsi128_si64(
      _mm_unpacklo_epi32(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1)));
  std::memcpy(bytes, &both, sizeof(both));
#else
  for (int64_t lane = 0; lane < lanes; ++lane) bytes[lane] = static_cast<uint8_t>(wide[lane]);
#endif
}

// body.template operator()<V>(i) over [begin, end): by eight lanes, then one by one.
template <typename Body>
inline void by_lanes(int64_t begin, int64_t end, Body&& body) {
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) body.template operator()<floats>(i);
  for (; i < end; ++i) body.template operator()<float>(i);
}

template <typename V>
inline V maximum(V a, V b) {
  return a < b ? b : a;  // a when either is not a number
}

}  // namespace cortado::native
