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
#include "cortado/kernels/bf16_vectors.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define CORTADO_AVX512
#endif

namespace cortado::native {

// `lanes` floats, as many as the widest registers hold; half of them; or one. Kernels write each loop body
// once, for all three (docs/explanation/kernels.md). Arithmetic, comparison and ?: are the compiler's own on
// any of them.
#ifdef CORTADO_AVX512
inline constexpr int64_t lanes = 16;
#else
inline constexpr int64_t lanes = 8;
#endif
inline constexpr int64_t half_lanes = lanes / 2;

namespace detail {

template <typename Element, typename V>
struct Like {
  using type = VectorOf<Element, int64_t{sizeof(V) / sizeof(float)}>;
};
template <typename Element>
struct Like<Element, float> {
  using type = Element;
};

}  // namespace detail

// As many elements as V has floats.
template <typename Element, typename V>
using like = typename detail::Like<Element, V>::type;

namespace detail {

// As many unsigned integers of one or two bytes as V has floats, widened. GCC 12 widens by halves and joins
// them where the processor has one instruction.
template <typename V, typename Narrow>
inline like<uint32_t, V> load_widened(const Narrow* address) {
  like<Narrow, V> narrow;
  std::memcpy(&narrow, address, sizeof(narrow));
  constexpr bool bytes = sizeof(Narrow) == 1;
#ifdef CORTADO_AVX512
  if constexpr (sizeof(V) == sizeof(__m512)) {
    if constexpr (bytes) {
      return std::bit_cast<like<uint32_t, V>>(
          _mm512_maskz_cvtepu8_epi32(0xFFFF, std::bit_cast<__m128i>(narrow)));
    } else {
      return std::bit_cast<like<uint32_t, V>>(
          _mm512_maskz_cvtepu16_epi32(0xFFFF, std::bit_cast<__m256i>(narrow)));
    }
  }
#endif
#ifdef __AVX2__
  if constexpr (sizeof(V) == sizeof(__m256)) {
    if constexpr (bytes) {
      const __m128i low = _mm_cvtsi64_si128(std::bit_cast<int64_t>(narrow));
      return std::bit_cast<like<uint32_t, V>>(_mm256_cvtepu8_epi32(low));
    } else {
      return std::bit_cast<like<uint32_t, V>>(_mm256_cvtepu16_epi32(std::bit_cast<__m128i>(narrow)));
    }
  }
#endif
  return __builtin_convertvector(narrow, like<uint32_t, V>);
}

}  // namespace detail

using floats = VectorOf<float, lanes>;
using half_floats = VectorOf<float, half_lanes>;
using ints = VectorOf<int32_t, lanes>;
using uints = VectorOf<uint32_t, lanes>;

template <typename V>
inline constexpr int64_t lanes_of = sizeof(V) / sizeof(float);
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
    return reinterpret_cast<V>(detail::load_widened<V>(reinterpret_cast<const uint16_t*>(address)) << 16);
  }
}

// The value, which GCC would otherwise read from memory again wherever it is used.
template <typename V>
inline V in_register(V value) {
#ifdef CORTADO_AVX512
  asm("" : "+v"(value));
#elif defined(__AVX__)
  asm("" : "+x"(value));
#endif
  return value;
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
  return nearest_bf16(value);
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

namespace detail {

using pairs = VectorOf<uint64_t, half_lanes>;

// The lower half of each pair, times the factor.
inline pairs multiply_low_halves(pairs a, uint32_t factor) {
#ifdef CORTADO_AVX512
  const __m512i factors = reinterpret_cast<__m512i>(uints{} + factor);
  return reinterpret_cast<pairs>(_mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), factors));
#elif defined(__AVX2__)
  const __m256i factors = reinterpret_cast<__m256i>(uints{} + factor);
  return reinterpret_cast<pairs>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), factors));
#else
  return (a & 0xFFFFFFFF) * factor;
#endif
}

}  // namespace detail

// Upper halves of the 64-bit products.
inline uints multiply_high(uints a, uint32_t b) {
  const auto both = reinterpret_cast<detail::pairs>(a);
  const detail::pairs even = detail::multiply_low_halves(both, b) >> 32,
                      odd = detail::multiply_low_halves(both >> 32, b) >> 32 << 32;
  return reinterpret_cast<uints>(even | odd);
}

// Bytes as ints, as many as V has floats, and back (values in [0, 256)).
template <typename V>
inline ints_of<V> widen(const uint8_t* bytes) {
  return reinterpret_cast<ints_of<V>>(detail::load_widened<V>(bytes));
}
template <typename V>
inline void narrow(uint8_t* bytes, ints_of<V> wide) {
#ifdef CORTADO_AVX512
  if constexpr (sizeof(V) == sizeof(__m512)) {
    const __m128i packed = _mm512_maskz_cvtepi32_epi8(0xFFFF, std::bit_cast<__m512i>(wide));
    std::memcpy(bytes, &packed, sizeof(packed));
    return;
  }
#endif
  const auto halves = __builtin_convertvector(wide, like<uint16_t, V>);
  const auto packed = __builtin_convertvector(halves, like<uint8_t, V>);
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
  float sum() const {
    float total = one;
    for (int64_t lane = 0; lane < lanes; ++lane) total += all[lane];
    for (int64_t lane = 0; lane < half_lanes; ++lane) total += half[lane];
    return total;
  }
};

template <typename V>
inline V maximum(V a, V b) {
  return a < b ? b : a;  // a when either is not a number
}

}  // namespace cortado::native
