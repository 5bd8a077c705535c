#pragma once

#include <cstdint>
#include <cstring>

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

using Vector = float __attribute__((vector_size(vector_lanes * sizeof(float))));

inline Vector load(const float* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}
inline void store(float* to, Vector vector) { std::memcpy(to, &vector, sizeof vector); }

// A tile of `Rows` x tile_columns accumulators. Every loop over it is unrolled: only then it stays in
// registers.
template <int Rows>
struct Tile {
  Vector value[Rows][tile_vectors];

  void set_rows(const float* row) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < tile_vectors; ++v) value[r][v] = row ? load(row + v * vector_lanes) : Vector{};
  }
  void load_row(int r, const float* from) {
#pragma GCC unroll 16
    for (int v = 0; v < tile_vectors; ++v) value[r][v] = load(from + v * vector_lanes);
  }
  void store_row(int r, float* to) const {
#pragma GCC unroll 16
    for (int v = 0; v < tile_vectors; ++v) store(to + v * vector_lanes, value[r][v]);
  }
  // Rows `stride` floats apart.
  void load_rows(const float* from, int64_t stride) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) load_row(r, from + r * stride);
  }
  void store_rows(float* to, int64_t stride) const {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) store_row(r, to + r * stride);
  }
};

// tile[r] += sum over k in [0, depth) of a[r][k] * b[k]; b is a panel: [depth][tile_columns].
template <int Rows>
[[gnu::always_inline]] inline void multiply_rows(Tile<Rows>& tile, const float* const* a, int64_t offset,
                                                 int64_t depth, const float* b) {
  const float* row[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) row[r] = a[r] + offset;
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k, b += tile_columns) {
    Vector right[tile_vectors];
#pragma GCC unroll 16
    for (int v = 0; v < tile_vectors; ++v) right[v] = load(b + v * vector_lanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < tile_vectors; ++v) tile.value[r][v] += row[r][k] * right[v];
  }
}

// tile[r] += sum over k in [0, depth) of a[k * step + r] * b[k].
template <int Rows>
[[gnu::always_inline]] inline void multiply_columns(Tile<Rows>& tile, const float* a, int64_t step,
                                                    int64_t depth, const float* b) {
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k, a += step, b += tile_columns) {
    Vector right[tile_vectors];
#pragma GCC unroll 16
    for (int v = 0; v < tile_vectors; ++v) right[v] = load(b + v * vector_lanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < tile_vectors; ++v) tile.value[r][v] += a[r] * right[v];
  }
}

}  // namespace cortado::lowering
