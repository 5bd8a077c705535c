#include "cortado/kernels/pairs/row_product.h"

#include <algorithm>
#include <array>

#include "cortado/base/item_shares.h"
#include "cortado/kernels/lowering/lattice.h"
#include "cortado/kernels/native/simd.h"

namespace cortado::pairs {

namespace {

constexpr int64_t max_row_block = 96;
constexpr int64_t max_shared_words = 64 << 10;  // of panels that stay in the L2 cache together

// Rows that meet a panel, a tile after the other.
struct PanelTask {
  int64_t rows;
  const Word* const* left;  // [rows]
  bf16* const* out;         // [rows]
  const Word* panel;
  int64_t depth;            // words
  int64_t column, columns;  // the first, and how many: at most tile_columns
  const float* start;       // [tile_columns]
  bool rectify;
  bool streams;        // past the caches
  bool fetches_ahead;  // rows lie one after another, and no panel has met them yet
};

CORTADO_BEGIN_PAIRS

template <int Rows>
struct RowsInPlace {
  const Word* row[Rows];
  [[gnu::always_inline]] Word word(int r, int64_t k) const { return row[r][k]; }
};

// Two tiles ahead, as many bytes as a tile reads: the processor itself does not see that rows which are read
// side by side are one run.
[[gnu::always_inline]] inline lowering::Ahead ahead_of(const PanelTask& task, const Word* row) {
  const auto* const from = reinterpret_cast<const std::byte*>(row);
  constexpr int64_t step = tile_rows * int64_t{sizeof(Word)};
  return task.fetches_ahead ? lowering::Ahead{from + 2 * step * task.depth, step} : lowering::Ahead{from, 0};
}

// What is not finite stays so, or becomes not a number.
[[gnu::always_inline]] inline Floats rectified(Floats x) { return x < 0 ? Floats{} + 0 * x : x; }

// The task's rows are a multiple of `Rows`.
template <int Rows, int Vectors>
void multiply(const PanelTask& task) {
  const int64_t rows = task.rows, column = task.column, columns = task.columns;
  const bool rectify = task.rectify, streams = task.streams, whole = columns == tile_columns;
  for (int64_t row = 0; row < rows; row += Rows) {
    Tile<Rows, Vectors> tile;
    RowsInPlace<Rows> left;
    bf16* const* const out = task.out + row;
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      left.row[r] = task.left[row + r];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) tile.sum[r][v] = load<Floats>(task.start + v * lanes);
      if (!streams) __builtin_prefetch(out[r] + column, 1);  // fetched while the sums are made
    }
    tile.multiply(left, task.panel, task.depth, ahead_of(task, left.row[0]));
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      Floats sums[tile_vectors] = {};
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sums[v] = rectify ? rectified(tile.sum[r][v]) : tile.sum[r][v];
      const Halves numbers = narrowed(sums[0], sums[1]);
      if (streams) {
        native::stream(out[r] + column, numbers);
      } else if (whole) {
        store(out[r] + column, numbers);
      } else {
        store_first(out[r] + column, numbers, columns);
      }
    }
  }
}

CORTADO_END_PAIRS

using PanelFunction = void (*)(const PanelTask&);
template <int Vectors, int... i>
constexpr std::array<PanelFunction, tile_rows + 1> panel_functions(std::integer_sequence<int, i...>) {
  return {nullptr, multiply<i + 1, Vectors>...};
}
constexpr auto multiply_rows = panel_functions<tile_vectors>(std::make_integer_sequence<int, tile_rows>());
// By panels of which only the first vector has columns.
constexpr auto multiply_narrow_rows = panel_functions<1>(std::make_integer_sequence<int, tile_rows>());

}  // namespace

struct RowProduct::Block {
  Range rows, panels;
  bool streams;
  const Word* left[max_row_block];
  bf16* out[max_row_block];
};

RowProduct::RowProduct(const Rows& left, const Rows& out)
    : left_(left),
      out_(out),
      left_dense_(left.dense()),
      out_dense_(out.dense()),
      panels_(lowering::divide_up(out.channels, tile_columns)),
      blocks_(lowering::blocks_of_rows(left.count(), tile_rows, max_row_block, panels_)) {}

void RowProduct::point_to_rows(const bf16* left, bf16* out, Block& block) const {
  for (int64_t row = block.rows.begin; row < block.rows.end; ++row) {
    const int64_t left_at = left_dense_ ? row * left_.channels : left_.at(row);
    const int64_t out_at = out_dense_ ? row * out_.channels : out_.at(row);
    block.left[row - block.rows.begin] = reinterpret_cast<const Word*>(left + left_at);
    block.out[row - block.rows.begin] = out + out_at;
  }
}

void RowProduct::multiply_panel(const Block& block, Range rows, int64_t panel, const Word* right,
                                const lowering::Epilogue& epilogue) const {
  const int64_t column = panel * tile_columns, depth = left_.channels / 2;
  const int64_t columns = std::min<int64_t>(tile_columns, out_.channels - column);
  float start[tile_columns] = {};
  if (epilogue.bias) std::copy_n(epilogue.bias + column, columns, start);
  PanelTask task{.rows = rows.size() / tile_rows * tile_rows,
                 .left = block.left + (rows.begin - block.rows.begin),
                 .out = block.out + (rows.begin - block.rows.begin),
                 .panel = right + panel * depth * tile_columns,
                 .depth = depth,
                 .column = column,
                 .columns = columns,
                 .start = start,
                 .rectify = epilogue.rectify,
                 .streams = block.streams,
                 .fetches_ahead = left_dense_ && panel == block.panels.begin};
  const auto& multiply = columns > lanes ? multiply_rows : multiply_narrow_rows;
  multiply[tile_rows](task);
  task.left += task.rows;
  task.out += task.rows;
  task.rows = rows.size() - task.rows;
  if (task.rows > 0) multiply[task.rows](task);
}

// Where all panels stay in the L2 cache, a tile of rows meets them one after another; else a panel meets all
// rows of the block.
void RowProduct::multiply_block(const Block& block, const Word* right,
                                const lowering::Epilogue& epilogue) const {
  const int64_t words = block.panels.size() * left_.channels / 2 * tile_columns;
  const int64_t step = words <= max_shared_words ? tile_rows : block.rows.size();
  for (int64_t row = block.rows.begin; row < block.rows.end; row += step)
    for (int64_t panel = block.panels.begin; panel < block.panels.end; ++panel)
      multiply_panel(block, {row, std::min(row + step, block.rows.end)}, panel, right, epilogue);
}

void RowProduct::run(const bf16* left, const Word* right, bf16* out,
                     const lowering::Epilogue& epilogue) const {
  const bool streams = out_dense_ && out_.channels % tile_columns == 0 &&
                       reinterpret_cast<uintptr_t>(out) % sizeof(Halves) == 0 &&
                       native::wants_streaming(out, out_.count() * out_.channels);
  share_items(blocks_.count * blocks_.column_parts, [&](int64_t, int64_t item) {
    const int64_t row = item / blocks_.column_parts * blocks_.rows, part = item % blocks_.column_parts;
    Block block{
        .rows = {row, std::min(left_.count(), row + blocks_.rows)},
        .panels = {panels_ * part / blocks_.column_parts, panels_ * (part + 1) / blocks_.column_parts},
        .streams = streams,
        .left = {},
        .out = {}};
    point_to_rows(left, out, block);
    multiply_block(block, right, epilogue);
    if (streams) native::finish_streaming();
  });
}

}  // namespace cortado::pairs
