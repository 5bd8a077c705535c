#include <algorithm>
#include <array>
#include <utility>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/element.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/typed_vectors.h"
#include "cortado/kernels/lowering/weight_product.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado::lowering {

namespace {

constexpr int64_t pack_rows = 32;    // rows packed at a time, so that both sides stay in the L1 cache
constexpr int64_t copied_tiles = 4;  // at a time, of a row

// Rows that are copied to tiles side by side.
template <typename E>
struct CopyTask {
  const E* from;
  int64_t from_step, rows;  // between rows; how many
  float* to;
  int64_t to_step, tile_step, tiles;
};

// The width of a tile is a constant, so that its row is two or three moves. All tiles are written row by row:
// where rows lie a power of two apart, caches do not hold a line of each until the next tile reads it again.
template <typename E, int Width>
void copy_rows(const CopyTask<E>& task) {
  for (int64_t row = 0; row < task.rows; ++row) {
    const E* const from = task.from + row * task.from_step;
    __builtin_prefetch(from + pack_rows * task.from_step);  // of the next rows packed
    for (int64_t tile = 0; tile < task.tiles; ++tile)
      widen_few<Width>(from + tile * Width, task.to + tile * task.tile_step + row * task.to_step);
  }
}

template <typename E, int... I>
constexpr auto copy_functions(std::integer_sequence<int, I...>) {
  using Function = void (*)(const CopyTask<E>&);
  return std::array<Function, sizeof...(I) + 1>{nullptr, copy_rows<E, I + 1>...};
}
template <typename E>
constexpr auto copy_rows_of_width = copy_functions<E>(std::make_integer_sequence<int, tile_rows>());

// One row of a panel of the gradient, and where it comes from and goes to.
template <typename E>
struct GradientRow {
  const E* gradient;
  const E* rectified;  // or null
  float slope;
  E* masked;  // or null
  float* packed;
};

template <typename E>
void pack_whole_row(const GradientRow<E>& row) {
  for (int c = 0; c < tile_columns; c += vector_lanes) {
    Vector gradient = load(row.gradient + c);
    __builtin_prefetch(row.gradient + c + tile_columns);  // of the next panel
    if (row.rectified) gradient = load(row.rectified + c) > 0 ? gradient : row.slope * gradient;
    if (row.masked) store(row.masked + c, gradient);
    store(row.packed + c, gradient);
  }
}

template <typename E>
void pack_partial_row(const GradientRow<E>& row, int64_t columns) {
  for (int64_t c = 0; c < tile_columns; c += vector_lanes) {
    const int64_t count = std::clamp<int64_t>(columns - c, 0, vector_lanes);
    Vector gradient = load_first(row.gradient + c, count);
    if (row.rectified) gradient = load_first(row.rectified + c, count) > 0 ? gradient : row.slope * gradient;
    if (row.masked) store_first(row.masked + c, gradient, count);
    store(row.packed + c, gradient);
  }
}

}  // namespace

// Packs one input line, shifted by the offset of a tap along w, to [tile][w][tile_height_] (tiles
// tile_elements() apart). Positions outside the line are zero.
template <typename E>
void WeightProduct::pack_line(const E* line, int64_t offset, float* to) const {
  const LatticeAxis& w = lattice_.axis[2];
  const int64_t channels = lattice_.depth / lattice_.run;
  // Rows [low, high) read inside the line.
  const int64_t low = std::min(w.rows, divide_up(std::max<int64_t>(0, -offset), w.step));
  const int64_t high =
      std::clamp(divide_up(std::max<int64_t>(0, w.extent - lattice_.run - offset + 1), w.step), low, w.rows);
  for (int64_t block = 0; block < w.rows; block += pack_rows)
    for (int64_t tile = 0, tiles = 0; tile < tiles_; tile += tiles) {
      const int64_t k = tile * tile_height_, width = std::min(tile_height_, lattice_.depth - k);
      tiles = std::clamp<int64_t>((lattice_.depth - k) / tile_height_, 1, copied_tiles);
      const int64_t block_end = std::min(w.rows, block + pack_rows);
      const int64_t inside = std::clamp(low, block, block_end), outside = std::clamp(high, inside, block_end);
      float* packed = to + tile * tile_elements();
      const auto pack_border = [&](int64_t row) {
        for (int64_t i = 0; i < tiles * width; ++i) {
          const int64_t at = row * w.step + offset + (k + i) / channels;
          packed[i / width * tile_elements() + row * tile_height_ + i % width] =
              at >= 0 && at < w.extent ? widened(line[at * w.left_stride + (k + i) % channels]) : 0.0f;
        }
      };
      for (int64_t row = block; row < inside; ++row) pack_border(row);
      copy_rows_of_width<E>[width]({.from = line + (inside * w.step + offset) * w.left_stride + k,
                                    .from_step = w.step * w.left_stride,
                                    .rows = outside - inside,
                                    .to = packed + inside * tile_height_,
                                    .to_step = tile_height_,
                                    .tile_step = tile_elements(),
                                    .tiles = tiles});
      for (int64_t row = outside; row < block_end; ++row) pack_border(row);
    }
}

template <typename E>
void WeightProduct::pack_left_rows(const Block& block, const E* left, float* packed) const {
  const LatticeAxis &d = lattice_.axis[0], &h = lattice_.axis[1], &w = lattice_.axis[2];
  const int64_t w_taps = w.offset.size(), h_copies = shifts_lines() ? 1 : h.offset.size(),
                of_piece = copies();
  const int64_t pieces = block.pieces.size();
  parallel_for(pieces * of_piece * lines_, [&](int64_t item) {
    const int64_t line = item % lines_, copy = item / lines_ % of_piece, index = item / lines_ / of_piece;
    const Piece& piece = block.pieces[index];
    const int64_t pd = piece.d * d.step + d.offset[copy / (w_taps * h_copies)];
    const int64_t ph = (piece.begin + line) * h.step + h.offset[copy / w_taps % h_copies];
    if (line >= packed_lines(piece.end - piece.begin) || pd < 0 || pd >= d.extent || ph < 0 || ph >= h.extent)
      return;
    pack_line(left + piece.sample * lattice_.left_batch_stride + pd * d.left_stride + ph * h.left_stride,
              w.offset[copy % w_taps],
              packed + index * piece_elements() + copy * tiles_ * tile_elements() + line * line_elements());
  });
}

void WeightProduct::pack_left(const Block& block, const float* left, float* packed) const {
  with_tensor_type(types_.left, [&]<typename E>() { pack_left_rows<E>(block, elements<E>(left), packed); });
}

template <typename E>
void WeightProduct::pack_gradient_rows(const Block& block, const Operands& operands, float* packed) const {
  const E* const gradient = elements<E>(operands.out_gradient);
  const E* const rectified = elements<E>(operands.rectified);
  E* const masked = elements<E>(operands.masked);
  const LatticeAxis &d = lattice_.axis[0], &h = lattice_.axis[1], &w = lattice_.axis[2];
  const int64_t panel_stride = block_rows_ * tile_columns, columns = lattice_.columns;
  for (size_t index = 0; index < block.pieces.size(); ++index) {
    const Piece& piece = block.pieces[index];
    const int64_t plane = piece.sample * lattice_.out_batch_stride + piece.d * d.out_stride;
    parallel_for((piece.end - piece.begin) * divide_up(w.rows, pack_rows), [&](int64_t item) {
      const int64_t parts = divide_up(w.rows, pack_rows), line = item / parts;
      const int64_t begin = item % parts * pack_rows, end = std::min(w.rows, begin + pack_rows);
      const int64_t at = plane + (piece.begin + line) * h.out_stride;
      float* to = packed + (block.first_row[index] + line * w.rows) * tile_columns;
      for (int64_t panel = 0; panel < panels_; ++panel) {
        const int64_t column = panel * tile_columns;
        for (int64_t row = begin; row < end; ++row) {
          const int64_t from = at + row * w.out_stride + column;
          const GradientRow<E> task{gradient + from, rectified ? rectified + from : nullptr, operands.slope,
                                    masked ? masked + from : nullptr,
                                    to + panel * panel_stride + row * tile_columns};
          if (columns - column >= tile_columns) {
            pack_whole_row(task);
          } else {
            pack_partial_row(task, columns - column);
          }
        }
      }
    });
  }
}

void WeightProduct::pack_gradient(const Block& block, const Operands& operands, float* packed) const {
  with_tensor_type(types_.out_gradient,
                   [&]<typename E>() { pack_gradient_rows<E>(block, operands, packed); });
}

}  // namespace cortado::lowering
