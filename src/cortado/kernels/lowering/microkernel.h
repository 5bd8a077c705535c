#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "cortado/kernels/lowering/ahead.h"

namespace cortado::lowering {

// The register tile all matrix products of this folder are made of: C[rows][columns] += A * B with the
// accumulators kept in registers. Written with the compiler's vector extensions, so that one source serves
// every instruction set; the tile is sized for the registers at hand (16 of 8 floats with AVX2, 32 of 16 with
// AVX-512), leaving room for one row of B and one broadcast element of A.
#if defined(__AVX512F__)
inline constexpr int vector_lanes = 16;
inline constexpr int tile_rows = 8;
#elif defined(__AVX__)
inline constexpr int vector_lanes = 8;
inline constexpr int tile_rows = 6;
#else
inline constexpr int vector_lanes = 4;
inline constexpr int tile_rows = 4;
#endif
inline constexpr int tile_vectors = 2;
inline constexpr int tile_columns = tile_vectors * vector_lanes;  // width of a panel of B

// The columns that B's panel from `column` on takes in memory, padding among them, where B has `columns`: the
// last panel is one vector wide where that holds the columns which are left.
inline int64_t panel_width(int64_t columns, int64_t column) {
  return columns - column > vector_lanes ? tile_columns : vector_lanes;
}
// Those of all panels.
inline int64_t padded_columns(int64_t columns) {
  return (columns + vector_lanes - 1) / vector_lanes * vector_lanes;
}

using Vector = float __attribute__((vector_size(vector_lanes * sizeof(float))));

inline Vector load(const float* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}
inline void store(float* to, Vector vector) { std::memcpy(to, &vector, sizeof vector); }

// The first `count` lanes, of [0, vector_lanes]; the others are loaded as zeros, and not stored.
inline Vector load_first(const float* from, int64_t count) {
#ifdef __AVX512F__
  return reinterpret_cast<Vector>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from));
#else
  Vector vector{};
  std::memcpy(&vector, from, static_cast<size_t>(count) * sizeof(float));
  return vector;
#endif
}
inline void store_first(float* to, Vector vector, int64_t count) {
#ifdef __AVX512F__
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), reinterpret_cast<__m512>(vector));
#else
  std::memcpy(to, &vector, static_cast<size_t>(count) * sizeof(float));
#endif
}

// The first half, then zeros. An intrinsic function in place of the compiler's vectors would keep a tile out
// of registers.
inline Vector load_half(const float* from) {
  using Half = float __attribute__((vector_size(vector_lanes / 2 * sizeof(float))));
  Half half;
  std::memcpy(&half, from, sizeof half);
  return [&]<int... lane>(std::integer_sequence<int, lane...>) {
    return __builtin_shufflevector(half, Half{}, lane...);
  }
  (std::make_integer_sequence<int, vector_lanes>());
}

// A tile of `Rows` x `Vectors` accumulators: of all columns of a panel. Every loop over it is unrolled: only
// then it stays in registers.
template <int Rows, int Vectors = tile_vectors>
struct Tile {
  Vector value[Rows][Vectors];

  void set_rows(const float* row) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) value[r][v] = row ? load(row + v * vector_lanes) : Vector{};
  }
  void load_row(int r, const float* from) {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) value[r][v] = load(from + v * vector_lanes);
  }
  void store_row(int r, float* to) const {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) store(to + v * vector_lanes, value[r][v]);
  }
  // The same, but for the last vector's lanes from `last` on.
  void load_part(int r, const float* from, int64_t last) {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors - 1; ++v) value[r][v] = load(from + v * vector_lanes);
    value[r][Vectors - 1] = load_first(from + (Vectors - 1) * vector_lanes, last);
  }
  void store_part(int r, float* to, int64_t last) const {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors - 1; ++v) store(to + v * vector_lanes, value[r][v]);
    store_first(to + (Vectors - 1) * vector_lanes, value[r][Vectors - 1], last);
  }
  // Rows `stride` floats apart.
  void store_rows(float* to, int64_t stride) const {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) store_row(r, to + r * stride);
  }
  void add_to_rows(float* to, int64_t stride) const {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) {
        float* at = to + r * stride + v * vector_lanes;
        store(at, load(at) + value[r][v]);
      }
  }
};

// tile[r] += sum over k in [0, depth) of a[r][k] * b[k]; b is a panel: [depth][Vectors * vector_lanes].
template <int Rows, int Vectors, typename Fetched = NothingAhead>
[[gnu::always_inline]] inline void multiply_rows(Tile<Rows, Vectors>& tile, const float* const* a,
                                                 int64_t offset, int64_t depth, const float* b,
                                                 Fetched ahead = {}) {
  const float* row[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) row[r] = a[r] + offset;
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k, b += Vectors * vector_lanes) {
    ahead.fetch();
    Vector right[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) right[v] = load(b + v * vector_lanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) tile.value[r][v] += row[r][k] * right[v];
  }
}

// tile[r] += sum over k in [0, depth) of a[k * step + r] * b[k]; rows of b are `b_step` apart. Unless
// `whole`, only half of the last vector is read.
template <int Rows, bool whole = true, int Vectors, typename Fetched = NothingAhead>
[[gnu::always_inline]] inline void multiply_columns(Tile<Rows, Vectors>& tile, const float* a, int64_t step,
                                                    int64_t depth, const float* b,
                                                    int64_t b_step = tile_columns, Fetched ahead = {}) {
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k, a += step, b += b_step) {
    ahead.fetch();
    Vector right[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors - !whole; ++v) right[v] = load(b + v * vector_lanes);
    if constexpr (!whole) right[Vectors - 1] = load_half(b + (Vectors - 1) * vector_lanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) tile.value[r][v] += a[r] * right[v];
  }
}

}  // namespace cortado::lowering
