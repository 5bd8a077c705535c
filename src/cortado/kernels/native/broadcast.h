#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/base/parallel_for.h"
#include "cortado/base/shape.h"
#include "cortado/base/units.h"
#include "cortado/kernels/native/simd.h"

namespace cortado::native {

// A tensor and an operand that is repeated along some of its axes, as they lie in memory: the tensor is outer
// x blocks x inner x columns, the operand blocks x columns. A scale per channel has one block; one per sample
// and channel has a block per sample; one per sample has one column.
struct BroadcastLayout {
  int64_t outer = 1, blocks = 1, inner = 1, columns = 1;

  int64_t operand_size() const { return blocks * columns; }
  int64_t size() const { return outer * blocks * inner * columns; }
  int64_t repeats() const { return outer * inner; }
  // Whether neighbours in memory meet the same element of the operand.
  bool single() const { return columns == 1; }
  // Elements between starts of the pieces that are walked by lanes, as wants_streaming() asks for them.
  int64_t row() const { return single() ? inner : columns; }
  int64_t tiles_per_block() const { return (columns + tile_columns - 1) / tile_columns; }
  int64_t tiles() const { return blocks * tiles_per_block(); }
  // Number of threads that share the repeats of a tile: one where tiles are enough for all.
  int64_t shares() const {
    const int threads = compute_threads();
    return tiles() >= 8 * threads ? 1 : threads;
  }

  static constexpr int64_t tile_columns = 512;  // whose sums stay in the first-level cache
};

// Returns the layout of an operand that has the axes [first, first + axes) of a tensor of shape `x`.
BroadcastLayout broadcast_layout(const Shape& x, int first, int axes);

// An operand in its own order and type, a tensor's or a parameter's, and in the order in which the layout
// wants it, as floats.
class BroadcastOperand {
 public:
  enum class Order { tensor, parameter };
  BroadcastOperand(const Shape& x, int first, int axes, Order order, ElementType type);

  int64_t size() const { return size_; }
  // Whether packing would change nothing.
  bool packed() const { return packed_; }
  Bytes room() const { return {packed_ ? 0 : (size_ + 15) / 16 * 16 * int64_t{sizeof(float)}}; }
  // Returns the floats, which lie in `room` unless the operand is packed already.
  const float* pack(const float* operand, float* room) const;
  void unpack(const float* floats, float* operand) const;

 private:
  struct Axis {
    int64_t extent, step;  // elements of the operand between neighbours
  };
  template <typename Move>
  void for_each_run(Move&& move) const;

  std::vector<Axis> axes_;  // in the layout's order, innermost last
  int64_t size_ = 1;
  bool packed_ = true;
  ElementType type_;
};

// Lanes of the tensor from element i on, and the element of the operand that the first of them meets.
template <typename V, bool single>
struct BroadcastPlace {
  int64_t i, operand;
  V of(const float* operands) const {
    if constexpr (single) {
      return splat<V>(operands[operand]);
    } else {
      return load<V>(operands + operand);
    }
  }
};

namespace detail {

// Columns of a block, and the share of its repeats that one thread takes.
struct BroadcastTile {
  int64_t block, column, width;
  int64_t begin, end;  // repeats

  BroadcastTile(const BroadcastLayout& x, int64_t tile, int64_t share, int64_t shares)
      : block(tile / x.tiles_per_block()),
        column(tile % x.tiles_per_block() * x.tile_columns),
        width(std::min(x.columns - column, x.tile_columns)),
        begin(bound(x, share, shares)),
        end(bound(x, share + 1, shares)) {}

 private:
  // Shares begin at cache lines.
  static int64_t bound(const BroadcastLayout& x, int64_t share, int64_t shares) {
    const int64_t unit = x.single() ? 64 : 1, units = (x.repeats() + unit - 1) / unit;
    return std::min(x.repeats(), units * share / shares * unit);
  }
};

template <int terms>
using TileSums = std::array<std::array<double, BroadcastLayout::tile_columns>, terms>;

// A run of neighbours that all meet one element of the operand.
template <int terms, typename Body>
inline void add_run(int64_t first, int64_t count, int64_t operand, TileSums<terms>& sums, Body&& body) {
  std::array<EachWidth, terms> totals;
  by_lanes(0, count, [&]<typename V>(int64_t i) {
    const std::array<V, terms> term = body(BroadcastPlace<V, true>{first + i, operand});
    for (int t = 0; t < terms; ++t) totals[t].template of<V>() += term[t];
  });
  for (int t = 0; t < terms; ++t) sums[t][0] += totals[t].sum();
}

// Rows of `width` columns, `step` elements apart, that all meet the same elements of the operand. They are
// summed in float.
template <int terms, int rows, typename Body>
inline void add_rows(int64_t first, int64_t step, int64_t width, int64_t operand, float* sums, Body&& body) {
  by_lanes(0, width, [&]<typename V>(int64_t k) {
    std::array<V, terms> total = body(BroadcastPlace<V, false>{first + k, operand + k});
    for (int64_t row = 1; row < rows; ++row) {
      const std::array<V, terms> next = body(BroadcastPlace<V, false>{first + row * step + k, operand + k});
      for (int t = 0; t < terms; ++t) total[t] += next[t];
    }
    for (int t = 0; t < terms; ++t) {
      float* sum = sums + t * BroadcastLayout::tile_columns + k;
      store(sum, load<V>(sum) + total[t]);
    }
  });
}

template <int terms, bool single, typename Body>
inline void visit_tile(const BroadcastLayout& x, const BroadcastTile& tile, TileSums<terms>& sums,
                       Body&& body) {
  // Elements that are summed in float before a sum in double takes over: rows, or neighbours.
  constexpr int64_t longest = single ? 2048 : 64;
  const int64_t operand = tile.block * x.columns + tile.column, step = x.columns, width = tile.width;
  std::array<float, terms * BroadcastLayout::tile_columns> floats_of_block;
  float* block = floats_of_block.data();
  for (int t = 0; t < terms; ++t) std::fill_n(sums[t].begin(), width, 0.0);
  for (int64_t repeat = tile.begin, count; repeat < tile.end; repeat += count) {
    const int64_t inner = repeat % x.inner, outer = repeat / x.inner;
    count = std::min({tile.end - repeat, x.inner - inner, longest});
    const int64_t first = ((outer * x.blocks + tile.block) * x.inner + inner) * step + tile.column;
    if constexpr (single) {
      add_run<terms>(first, count, operand, sums, body);
    } else {
      for (int t = 0; t < terms; ++t) std::fill_n(block + t * x.tile_columns, width, 0.0f);
      int64_t row = 0;
      for (; row + 4 <= count; row += 4)
        add_rows<terms, 4>(first + row * step, step, width, operand, block, body);
      for (; row < count; ++row) add_rows<terms, 1>(first + row * step, step, width, operand, block, body);
      for (int t = 0; t < terms; ++t)
        for (int64_t k = 0; k < width; ++k) sums[t][k] += block[t * x.tile_columns + k];
    }
  }
}

}  // namespace detail

// Scratch that visit_broadcast<terms> needs.
template <int terms>
Bytes broadcast_sums_scratch(const BroadcastLayout& x) {
  const int64_t shares = x.shares();
  return {shares > 1 ? (shares * terms * x.operand_size() + 7) / 8 * 8 * int64_t{sizeof(double)} : 0};
}

// Calls body(place), place being a BroadcastPlace, once for all elements of the tensor; it may store. The
// std::array<V, terms> that it returns are summed over the elements that meet the same one of the operand, in
// operand order, to results[t]; a null result is left out. The sums depend on the number of threads only by
// their rounding in double.
template <int terms, typename Body>
void visit_broadcast(const BroadcastLayout& x, std::byte* scratch, const std::array<float*, terms>& results,
                     Body&& body) {
  const int64_t shares = x.shares(), size = x.operand_size();
  double* partial = reinterpret_cast<double*>(scratch);  // shares x terms x size
  parallel_ranges(
      x.tiles() * shares, [&](int64_t begin, int64_t end) __attribute__((flatten)) {
        const std::remove_cvref_t<Body> own = body;  // whose pointers no store can change
        detail::TileSums<terms> sums;
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t share = unit % shares;
          const detail::BroadcastTile tile(x, unit / shares, share, shares);
          x.single() ? detail::visit_tile<terms, true>(x, tile, sums, own)
                     : detail::visit_tile<terms, false>(x, tile, sums, own);
          const int64_t operand = tile.block * x.columns + tile.column;
          for (int t = 0; t < terms; ++t) {
            if (shares > 1) {
              std::copy_n(sums[t].begin(), tile.width, partial + (share * terms + t) * size + operand);
            } else if (results[t]) {
              std::copy_n(sums[t].begin(), tile.width, results[t] + operand);
            }
          }
        }
        finish_streaming();
      });
  if (shares == 1) return;
  for (int t = 0; t < terms; ++t) {
    for (int64_t k = 0; results[t] && k < size; ++k) {
      double sum = 0;
      for (int64_t share = 0; share < shares; ++share) sum += partial[(share * terms + t) * size + k];
      results[t][k] = static_cast<float>(sum);
    }
  }
}

// pass(streaming) with a constant: whether `target`, a tensor of that layout, is written past the caches.
// `in_place` says that the pass reads it, too.
template <typename E, typename Pass>
void by_streaming(const E* target, const BroadcastLayout& x, bool in_place, Pass&& pass) {
  if (target && !in_place && wants_streaming(target, x.size(), x.row())) {
    pass(std::true_type{});
  } else {
    pass(std::false_type{});
  }
}

}  // namespace cortado::native
