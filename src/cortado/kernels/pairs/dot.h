#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "cortado/base/bf16.h"
#include "cortado/kernels/bf16_vectors.h"
#include "cortado/kernels/lowering/ahead.h"

// Code between these two may use the instructions for bf16 of AVX-512, whatever processor the program is
// built for. Who calls it has asked onednn::has_bf16_instructions().
#ifdef __x86_64__
#define CORTADO_BEGIN_PAIRS \
  _Pragma("GCC push_options") _Pragma("GCC target(\"avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma\")")
#define CORTADO_END_PAIRS _Pragma("GCC pop_options")
#else
#define CORTADO_BEGIN_PAIRS
#define CORTADO_END_PAIRS
#endif

// Two bf16 numbers side by side in memory are a word, and one instruction (vdpbf16ps) adds both products of
// two words to a float.
namespace cortado::pairs {

inline constexpr int lanes = 16;                           // words, or floats, of a register
inline constexpr int tile_rows = 8, tile_vectors = 2;      // of sums that stay in registers
inline constexpr int tile_columns = tile_vectors * lanes;  // width of a panel of words

using Word [[gnu::may_alias]] = uint32_t;
using Words = VectorOf<uint32_t, lanes>;
using Floats = VectorOf<float, lanes>;
using Halves = VectorOf<uint16_t, 2 * lanes>;

CORTADO_BEGIN_PAIRS

template <typename V, typename Element>
[[gnu::always_inline]] inline V load(const Element* from) {
  V value;
  std::memcpy(&value, from, sizeof(V));
  return value;
}
template <typename V, typename Element>
[[gnu::always_inline]] inline void store(Element* to, V value) {
  std::memcpy(static_cast<void*>(to), &value, sizeof(V));
}

#ifdef __x86_64__
// sum + a_0 * b_0 + a_1 * b_1.
[[gnu::always_inline]] inline Floats dot(Floats sum, Words a, Words b) {
  return reinterpret_cast<Floats>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
}
// To the nearest bf16, ties to even; those of `low` first.
[[gnu::always_inline]] inline Halves narrowed(Floats low, Floats high) {
  return reinterpret_cast<Halves>(
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(high), reinterpret_cast<__m512>(low)));
}
// The first `count` elements, as many as there are at most; others are loaded as zeros, and not stored.
[[gnu::always_inline]] inline Halves load_first(const bf16* from, int64_t count) {
  const auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
  return reinterpret_cast<Halves>(_mm512_maskz_loadu_epi16(mask, from));
}
[[gnu::always_inline]] inline void store_first(bf16* to, Halves value, int64_t count) {
  const auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
  _mm512_mask_storeu_epi16(to, mask, reinterpret_cast<__m512i>(value));
}
[[gnu::always_inline]] inline Floats load_first(const float* from, int64_t count) {
  return reinterpret_cast<Floats>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), from));
}
[[gnu::always_inline]] inline void store_first(float* to, Floats value, int64_t count) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), reinterpret_cast<__m512>(value));
}
#else
inline Floats dot(Floats sum, Words a, Words b) {
  const auto low = [](Words words) { return reinterpret_cast<Floats>(words << 16); };
  const auto high = [](Words words) { return reinterpret_cast<Floats>(words & 0xFFFF0000); };
  return sum + low(a) * low(b) + high(a) * high(b);
}
inline Halves narrowed(Floats low, Floats high) {
  const auto first = nearest_bf16(low), second = nearest_bf16(high);
  Halves all;
  std::memcpy(&all, &first, sizeof(first));
  std::memcpy(reinterpret_cast<std::byte*>(&all) + sizeof(first), &second, sizeof(second));
  return all;
}
template <typename V, typename Element>
inline V load_elements(const Element* from, int64_t count) {
  V value{};
  std::memcpy(&value, from, static_cast<size_t>(count) * sizeof(Element));
  return value;
}
inline Halves load_first(const bf16* from, int64_t count) { return load_elements<Halves>(from, count); }
inline Floats load_first(const float* from, int64_t count) { return load_elements<Floats>(from, count); }
template <typename V, typename Element>
inline void store_first(Element* to, V value, int64_t count) {
  std::memcpy(static_cast<void*>(to), &value, static_cast<size_t>(count) * sizeof(Element));
}
#endif

// Word i is {a[i], b[i]}, of the first or the second half of `a` and `b`.
template <int first, int... i>
[[gnu::always_inline]] inline Words words_of(Halves a, Halves b, std::integer_sequence<int, i...>) {
  return reinterpret_cast<Words>(
      __builtin_shufflevector(a, b, (i % 2 == 0 ? first + i / 2 : 2 * lanes + first + i / 2)...));
}
[[gnu::always_inline]] inline Words first_words(Halves a, Halves b) {
  return words_of<0>(a, b, std::make_integer_sequence<int, 2 * lanes>());
}
[[gnu::always_inline]] inline Words last_words(Halves a, Halves b) {
  return words_of<lanes>(a, b, std::make_integer_sequence<int, 2 * lanes>());
}

// Word i is {both[i], both[lanes + i]}.
template <int... i>
[[gnu::always_inline]] inline Words joined_halves(Halves both, std::integer_sequence<int, i...>) {
  return reinterpret_cast<Words>(__builtin_shufflevector(both, both, (i / 2 + i % 2 * lanes)...));
}
[[gnu::always_inline]] inline Words words_of_halves(Halves both) {
  return joined_halves(both, std::make_integer_sequence<int, 2 * lanes>());
}

// `Rows` x `Vectors` sums. All loops over them are unrolled: only then they stay in registers.
template <int Rows, int Vectors>
struct Tile {
  Floats sum[Rows][Vectors];

  // sum[r] += left.word(r, k) * right[k] over words k of [0, depth). `right` is a panel. With each of them a
  // step of `ahead` is fetched.
  template <typename Left>
  [[gnu::always_inline]] void multiply(const Left& left, const Word* right, int64_t depth,
                                       lowering::Ahead ahead) {
    for (int64_t k = 0; k < depth; ++k, right += tile_columns) {
      ahead.fetch();
      Words column[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) column[v] = load<Words>(right + v * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const Words row = Words{} + left.word(r, k);
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) sum[r][v] = dot(sum[r][v], column[v], row);
      }
    }
  }
};

CORTADO_END_PAIRS

}  // namespace cortado::pairs
