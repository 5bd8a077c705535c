#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>

#ifdef __AVX__
#include <immintrin.h>
#endif

#include "cortado/base/bf16.h"

namespace cortado::native {

// `lanes` floats, as many as the widest registers hold; half of them; or one. Kernels write each loop body
// once, for all three (docs/explanation/kernels.md). Arithmetic, comparison and ?: are the compiler's own on
// any of them.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
inline constexpr int64_t lanes = 16;
#else
inline constexpr int64_t lanes = 8;
#endif
inline constexpr int64_t half_lanes = lanes / 2;

namespace detail {

template <typename Element, int64_t count>
using VectorOf [[gnu::vector_size(count * sizeof(Element))]] = Element;

template <typename Element, typename V>
struct Like {
  using type = VectorOf<Element, int64_t{sizeof(V) / sizeof(float)}>;
};
template <typename Element>
struct Like<Element, float> {
  using type = Element;
};

}  // namespace detail

using floats = detail::VectorOf<float, lanes>;
using half_floats = detail::VectorOf<float, half_lanes>;
using ints = detail::VectorOf<int32_t, lanes>;
using uints = detail::VectorOf<uint32_t, lanes>;

template <typename V>
inline constexpr int64_t lanes_of = sizeof(V) / sizeof(float);
// As many elements as V has floats.
template <typename Element, typename V>
using like = typename detail::Like<Element, V>::type;
// The integer type as wide as V; comparisons of V can be kept in it.
template <typename V>
using ints_of = like<int32_t, V>;

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
    like<uint16_t, V> upper;
    std::memcpy(&upper, address, sizeof(upper));
    return reinterpret_cast<V>(__builtin_convertvector(upper, like<uint32_t, V>) << 16);
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

// Writes past the caches where the instruction set can; the address is a multiple of the size of `value`.
template <typename Value>
inline void stream(void* address, const Value& value) {
#ifdef __AVX__
  if constexpr (sizeof(Value) % sizeof(__m256i) == 0) {
    __m256i parts[sizeof(Value) / sizeof(__m256i)];
    std::memcpy(parts, &value, sizeof(Value));
    for (size_t i = 0; i < std::size(parts); ++i)
      _mm256_stream_si256(static_cast<__m256i*>(address) + i, parts[i]);
    return;
  } else if constexpr (sizeof(Value) == sizeof(__m128i)) {
    _mm_stream_si128(static_cast<__m128i*>(address), std::bit_cast<__m128i>(value));
    return;
  }
#endif
  std::memcpy(address, &value, sizeof(Value));
}

template <bool streaming, typename V>
inline void store(float* address, V value) {
  if constexpr (streaming && lanes_of<V> == lanes) {
    stream(address, value);
  } else {
    std::memcpy(address, &value, sizeof(V));
  }
}
template <typename V>
inline void store(float* address, V value) {
  store<false>(address, value);
}

// Each float to the nearest bf16, ties to even. AVX-512's instruction takes numbers below the normal ones,
// 2^-126, for zeros.
template <typename V>
inline like<uint16_t, V> narrowed(V value) {
#if defined(__AVX512BF16__) && defined(__AVX512VL__)
  if constexpr (sizeof(V) == sizeof(__m512)) {
    return std::bit_cast<like<uint16_t, V>>(_mm512_cvtneps_pbh(std::bit_cast<__m512>(value)));
  } else if constexpr (sizeof(V) == sizeof(__m256)) {
    return std::bit_cast<like<uint16_t, V>>(_mm256_cvtneps_pbh(std::bit_cast<__m256>(value)));
  }
#endif
  const auto bits = reinterpret_cast<like<uint32_t, V>>(value);
  const auto nearest = bits + 0x7FFF + (bits >> 16 & 1), quiet = bits | 0x400000;
  return __builtin_convertvector((value == value ? nearest : quiet) >> 16, like<uint16_t, V>);
}

template <bool streaming, typename V>
inline void store(bf16* address, V value) {
  if constexpr (std::is_same_v<V, float>) {
    *address = to_bf16(value);
  } else {
    const like<uint16_t, V> upper = narrowed(value);
    if constexpr (streaming && lanes_of<V> == lanes) {
      stream(address, upper);
    } else {
      std::memcpy(static_cast<void*>(address), &upper, sizeof(upper));
    }
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
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  const __m512i factor = _mm512_set1_epi32(static_cast<int32_t>(b)), both = reinterpret_cast<__m512i>(a);
  const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(both, factor), 32);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(both, 32), factor);
  return reinterpret_cast<uints>(_mm512_mask_blend_epi32(0xAAAA, even, odd));
#elif defined(__AVX2__)
  const __m256i factor = _mm256_set1_epi32(static_cast<int32_t>(b)), both = reinterpret_cast<__m256i>(a);
  const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(both, factor), 32);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(both, 32), factor);
  return reinterpret_cast<uints>(_mm256_blend_epi32(even, odd, 0xAA));
#else
  for (int64_t lane = 0; lane < lanes; ++lane) a[lane] = static_cast<uint32_t>(uint64_t{a[lane]} * b >> 32);
  return a;
#endif
}

// Bytes as ints, as many as V has floats, and back (values in [0, 256)).
template <typename V>
inline ints_of<V> widen(const uint8_t* bytes) {
  like<uint8_t, V> packed;
  std::memcpy(&packed, bytes, sizeof(packed));
  return __builtin_convertvector(packed, ints_of<V>);
}
template <typename V>
inline void narrow(uint8_t* bytes, ints_of<V> wide) {
  const auto packed = __builtin_convertvector(wide, like<uint8_t, V>);
  std::memcpy(bytes, &packed, sizeof(packed));
}

// body.template operator()<V>(i) over [begin, end): by all lanes, at most once by half of them, then one by
// one.
template <typename Body>
inline void by_lanes(int64_t begin, int64_t end, Body&& body) {
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) body.template operator()<floats>(i);
  if (i + half_lanes <= end) {
    body.template operator()<half_floats>(i);
    i += half_lanes;
  }
  for (; i < end; ++i) body.template operator()<float>(i);
}

// A value of V for each V that by_lanes() calls its body with: what a loop over lanes keeps from one call to
// the next.
struct EachWidth {
  floats all{};
  half_floats half{};
  float one = 0;

  template <typename V>
  V& of() {
    if constexpr (std::is_same_v<V, floats>) {
      return all;
    } else if constexpr (std::is_same_v<V, half_floats>) {
      return half;
    } else {
      return one;
    }
  }
};

template <typename V>
inline V maximum(V a, V b) {
  return a < b ? b : a;  // a when either is not a number
}

}  // namespace cortado::native
