#include "cortado/kernels/lowering/row_product.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "cortado/base/error.h"
#include "cortado/base/item_shares.h"
#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/lowering/typed_vectors.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado::lowering {

namespace {

constexpr int64_t max_depth_block = 640;  // times tile_columns floats: a panel's part in the L1 cache
constexpr int64_t max_row_block = 96;     // times max_depth_block floats: the left operand's part in L2
constexpr double many_outside = 0.05;     // of all taps of all points
constexpr int64_t max_shared_panels = 64 << 10;  // floats: panels' parts that stay in L2 together
constexpr int max_part_levels = 6;               // of a tree of parts

// One tile's share of a depth block. `left` is [taps][tile_rows], begins with null where all rows read zeros;
// `out` is [tile_rows]. Kept sums are [tile_rows][tile_columns].
struct TileTask {
  const float* const* left;
  int64_t taps, offset, depth;
  const float* panel;
  int64_t panel_step;  // between taps
  float* const* out;
  int64_t first_column;
  int columns;                            // at most tile_columns
  const float* start;                     // [tile_columns] initial sums; null: continue from `from`
  const float* from;                      // kept sums; null: what `out` holds
  float* kept;                            // where the sums go; null: `out`
  const float* addends[max_part_levels];  // kept sums that the tile is added to
  int addend_count;
  bool rectify;
  float slope;
  bool streams;  // past the caches
  Ahead ahead;
};

template <int Rows, int Vectors>
void rectify_tile(Tile<Rows, Vectors>& tile, float slope) {
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) {
      Vector x = tile.value[r][v];
      tile.value[r][v] = (x < 0 ? Vector{} : x) + slope * (x < 0 ? x : Vector{});
    }
}

// `Out` is what the task's `out` holds. Of bf16 it holds results alone.
template <typename Out, int Rows, int Vectors>
void multiply_tile(const TileTask& task) {
  Tile<Rows, Vectors> tile;
  const int last = task.columns - (Vectors - 1) * vector_lanes;  // columns of the last vector
  const bool whole = last == vector_lanes;
  if (task.start) {
    tile.set_rows(task.start);
    for (int r = 0; r < Rows && !task.streams; ++r)  // fetched while the sums are made
      for (int v = 0; v < Vectors; ++v)
        __builtin_prefetch(reinterpret_cast<Out*>(task.out[r]) + task.first_column + v * vector_lanes, 1);
  } else if (task.from) {
    for (int r = 0; r < Rows; ++r) tile.load_row(r, task.from + r * tile_columns);
  } else {
    for (int r = 0; r < Rows; ++r) {
      const float* from = task.out[r] + task.first_column;
      if (whole) {
        tile.load_row(r, from);
      } else {
        tile.load_part(r, from, last);
      }
    }
  }
  const float* panel = task.panel;
  for (int64_t tap = 0; tap < task.taps; ++tap, panel += task.panel_step)
    if (task.left[tap * tile_rows])
      multiply_rows<Rows>(tile, task.left + tap * tile_rows, task.offset, task.depth, panel, task.ahead);
  for (int a = 0; a < task.addend_count; ++a)
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Vectors; ++v)
        tile.value[r][v] = load(task.addends[a] + r * tile_columns + v * vector_lanes) + tile.value[r][v];
  if (task.kept) {
    for (int r = 0; r < Rows; ++r) tile.store_row(r, task.kept + r * tile_columns);
    return;
  }
  if (task.rectify) rectify_tile(tile, task.slope);
  for (int r = 0; r < Rows; ++r) {
    Out* to = reinterpret_cast<Out*>(task.out[r]) + task.first_column;
    if (task.streams) {
      for (int v = 0; v < Vectors; ++v) stream(to + v * vector_lanes, tile.value[r][v]);
    } else if (whole) {
      for (int v = 0; v < Vectors; ++v) store(to + v * vector_lanes, tile.value[r][v]);
    } else {
      for (int v = 0; v < Vectors - 1; ++v) store(to + v * vector_lanes, tile.value[r][v]);
      store_first(to + (Vectors - 1) * vector_lanes, tile.value[r][Vectors - 1], last);
    }
  }
}

using TileFunction = void (*)(const TileTask&);
using TileFunctions = std::array<TileFunction, tile_rows + 1>;
template <typename Out, int Vectors, int... I>
constexpr TileFunctions tile_functions(std::integer_sequence<int, I...>) {
  return {nullptr, multiply_tile<Out, I + 1, Vectors>...};
}
template <typename Out, int Vectors>
constexpr TileFunctions multiply_panel_rows =
    tile_functions<Out, Vectors>(std::make_integer_sequence<int, tile_rows>());

// The functions for a panel of so many columns.
const TileFunctions& tile_functions_of(ElementType out, int columns) {
  return with_tensor_type(out, [&]<typename Out>() -> const TileFunctions& {
    return columns > vector_lanes ? multiply_panel_rows<Out, tile_vectors> : multiply_panel_rows<Out, 1>;
  });
}

// The share of the taps of all points of an axis that read nothing of the left tensor; `run`: positions read.
double share_outside(const LatticeAxis& axis, int64_t run) {
  int64_t outside = 0;
  for (int64_t row = 0; row < axis.rows; ++row)
    for (int64_t offset : axis.offset) {
      const int64_t position = row * axis.step + offset;
      outside += position + run <= 0 || position >= axis.extent;
    }
  return static_cast<double>(outside) / static_cast<double>(axis.rows * std::ssize(axis.offset));
}

}  // namespace

// A thread's tables for one block of rows.
struct RowProduct::Workspace {
  const float** left;  // [tile][tap][tile_rows]
  float** out;         // [row]
  float* kept;         // [level][row][tile_columns]
  float* border;       // copies of runs that cross the border of the left tensor
  float* widened;      // [row][depth], of a left tensor in bf16
  bool streams;        // whether the output is written past the caches
};

RowProduct::RowProduct(Lattice lattice, int parts, Types types)
    : lattice_(std::move(lattice)),
      parts_(parts),
      types_(types),
      pitch_(lattice_.pitch()),
      zeros_(lattice_.depth + tile_columns) {
  ensure(std::has_single_bit(static_cast<unsigned>(parts)) && lattice_.depth % parts == 0 &&
             kept_tiles() <= max_part_levels && (parts == 1 || lattice_.run == 1),
         "a depth of equal parts");
  ensure(types_.left == ElementType::f32 || (lattice_.taps() <= 1 && lattice_.run == 1), "one tap in bf16");
  order_rows();
  block_depth();
  blocks_ =
      blocks_of_rows(lattice_.rows(), tile_rows, max_row_block, divide_up(lattice_.columns, tile_columns));
}

void RowProduct::order_rows() {
  if (lattice_.rows() == 0 || lattice_.taps() == 0) return;
  const auto& [d, h, w] = lattice_.axis;
  const double inside =
      (1 - share_outside(d, 1)) * (1 - share_outside(h, 1)) * (1 - share_outside(w, lattice_.run));
  leaves_out_zeros_ = 1 - inside >= many_outside;
  if (leaves_out_zeros_) samples_ = std::min<int64_t>(lattice_.batch, tile_rows);
}

// A tile writes whole cache lines, each once, of a tensor that no cache holds.
bool RowProduct::streams_to(const float* out) const {
  const int64_t line = 64 / size_of(types_.out);
  const auto& [d, h, w] = lattice_.axis;
  for (const int64_t stride : {lattice_.out_batch_stride, d.out_stride, h.out_stride, w.out_stride})
    if (stride % line != 0) return false;
  const bool once = depth_blocks_.size() == 1 || kept_tiles() > 0;
  return once && lattice_.columns % line == 0 && reinterpret_cast<uintptr_t>(out) % 64 == 0 &&
         lattice_.rows() * lattice_.columns * size_of(types_.out) >= native::streaming_bytes;
}

void RowProduct::block_depth() {
  const int64_t length = lattice_.depth / parts_;
  for (int part = 0; part < parts_; ++part) {
    const size_t first = depth_blocks_.size();
    add_depth_blocks(part, part * length, length);
    depth_blocks_[first].first = depth_blocks_.back().last = true;
  }
}

void RowProduct::add_depth_blocks(int part, int64_t begin, int64_t length) {
  const int64_t taps = lattice_.taps();
  const auto add = [&](int64_t tap_begin, int64_t tap_end, int64_t from, int64_t size) {
    depth_blocks_.push_back({tap_begin, tap_end, from, size, false, false, part});
  };
  if (taps == 0) {
    add(0, 0, 0, 0);  // only the epilogue
  } else if (length > max_depth_block) {
    const int64_t size = round_up(divide_up(length, divide_up(length, max_depth_block)), tile_columns);
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t at = 0; at < length; at += size)
        add(tap, tap + 1, begin + at, std::min(size, length - at));
  } else {
    const int64_t blocks = divide_up(taps, max_depth_block / std::max<int64_t>(1, length));
    for (int64_t block = 0; block < blocks; ++block)
      add(taps * block / blocks, taps * (block + 1) / blocks, begin, length);
  }
}

// One for each level of the tree, and one for the part that is being summed.
int RowProduct::kept_tiles() const {
  if (parts_ > 1) return std::bit_width(static_cast<unsigned>(parts_));
  return types_.out != ElementType::f32 && depth_blocks_.size() > 1 ? 1 : 0;
}

// Floats of a row's widened copy: whole cache lines.
int64_t RowProduct::widened_depth() const {
  return types_.left == ElementType::f32 ? 0 : round_up(lattice_.depth, vector_lanes);
}

int64_t RowProduct::right_elements() const {
  return lattice_.taps() * lattice_.depth * padded_columns(lattice_.columns);
}

size_t RowProduct::scratch_bytes() const {
  const int64_t pointers = blocks_.rows * (lattice_.taps() + 1);
  const int64_t border = lattice_.run > 1 ? blocks_.rows * lattice_.taps() * lattice_.depth : 0;
  const int64_t floats = border + (kept_tiles() * tile_columns + widened_depth()) * blocks_.rows;
  return compute_threads() * round_up(pointers * sizeof(void*) + floats * sizeof(float), 64);
}

RowProduct::Workspace RowProduct::workspace(std::byte* scratch, int thread, bool streams) const {
  std::byte* own = scratch + thread * (scratch_bytes() / compute_threads());
  auto** left = reinterpret_cast<const float**>(own);
  own += blocks_.rows * lattice_.taps() * sizeof(float*);
  auto** out = reinterpret_cast<float**>(own);
  auto* kept = reinterpret_cast<float*>(own + blocks_.rows * sizeof(float*));
  float* rest = kept + kept_tiles() * blocks_.rows * tile_columns;
  return {left, out, kept, rest, rest, streams};
}

const float* RowProduct::left_at(const float* left, int64_t element) const {
  return from_element(left, types_.left, element);
}
float* RowProduct::out_at(float* out, int64_t element) const {
  return from_element(out, types_.out, element);
}

// Of the rows that read of the left tensor. Those that read zeros have floats.
void RowProduct::widen_rows(int64_t row_count, Workspace& work) const {
  if (lattice_.taps() == 0) return;
  for (int64_t row = 0; row < row_count; ++row) {
    const float*& left = work.left[row];
    if (!left || left == zeros_.data()) continue;
    float* const copy = work.widened + row * widened_depth();
    widen(elements<bf16>(left), copy, lattice_.depth);
    left = copy;
  }
}

// A zero-padded copy of the run that begins at `position` (outside [0, extent - run]) of a w line.
const float* RowProduct::border_run(const float* line, int64_t position, Workspace& work) const {
  const LatticeAxis& w = lattice_.axis[2];
  const int64_t begin = std::max<int64_t>(0, position), end = std::min(w.extent, position + lattice_.run);
  if (begin >= end) return zeros_.data();
  float* copy = work.border;
  work.border += lattice_.depth;
  std::fill(copy, copy + lattice_.depth, 0.0f);
  std::copy(line + begin * w.left_stride, line + end * w.left_stride,
            copy + (begin - position) * w.left_stride);
  return copy;
}

void RowProduct::point_to_rows(const float* left, float* out, int64_t row_begin, int64_t row_end,
                               Workspace& work) const {
  if (pitch_) {
    for (int64_t row = row_begin; row < row_end; ++row) {
      work.left[row - row_begin] = left_at(left, row * pitch_->left);
      work.out[row - row_begin] = out_at(out, row * pitch_->out);
    }
    return;
  }
  const auto& [d, h, w] = lattice_.axis;
  int64_t taps = lattice_.taps();
  const int64_t points = d.rows * h.rows * w.rows;
  // The samples whose points take turns.
  int64_t first = row_begin / (points * samples_) * samples_;
  int64_t last = std::min(lattice_.batch, first + samples_);
  const int64_t index = row_begin - first * points, point = index / (last - first);
  int64_t n = first + index % (last - first);
  int64_t id = point / w.rows / h.rows, ih = point / w.rows % h.rows, iw = point % w.rows;
  for (int64_t row = 0; row < row_end - row_begin; ++row) {
    const float** entry = work.left + row / tile_rows * taps * tile_rows + row % tile_rows;
    const float* image = left_at(left, n * lattice_.left_batch_stride);
    for (int64_t od : d.offset) {
      const int64_t pd = id * d.step + od;
      for (int64_t oh : h.offset) {
        const int64_t ph = ih * h.step + oh;
        const bool outside = pd < 0 || pd >= d.extent || ph < 0 || ph >= h.extent;
        const float* line = left_at(image, pd * d.left_stride + ph * h.left_stride);
        for (int64_t ow : w.offset) {
          const int64_t pw = iw * w.step + ow;
          const bool inside = pw >= 0 && pw + lattice_.run <= w.extent;
          *entry = outside  ? zeros_.data()
                   : inside ? left_at(line, pw * w.left_stride)
                            : border_run(line, pw, work);
          entry += tile_rows;
        }
      }
    }
    work.out[row] = out_at(
        out, n * lattice_.out_batch_stride + id * d.out_stride + ih * h.out_stride + iw * w.out_stride);
    if (++n < last) continue;
    n = first;
    if (++iw < w.rows) continue;
    iw = 0;
    if (++ih < h.rows) continue;
    ih = 0;
    if (++id < d.rows) continue;
    id = 0;
    n = first = last;
    last = std::min(lattice_.batch, first + samples_);
  }
  if (leaves_out_zeros_) leave_out_zeros(row_end - row_begin, work);
}

// Marks the taps that are outside for all rows of a tile.
void RowProduct::leave_out_zeros(int64_t row_count, const Workspace& work) const {
  const int64_t taps = lattice_.taps();
  for (int64_t row = 0; row < row_count; row += tile_rows)
    for (int64_t tap = 0; tap < taps; ++tap) {
      const float** entry = work.left + row * taps + tap * tile_rows;
      const auto is_zeros = [&](const float* left) { return left == zeros_.data(); };
      if (std::all_of(entry, entry + std::min<int64_t>(tile_rows, row_count - row), is_zeros))
        *entry = nullptr;
    }
}

// Where sums are kept, a panel's are over the whole depth.
//
// A panel's part of a depth block stays in the L1 cache over all rows; where all panels' parts stay in L2, a
// tile of rows meets them one after another instead, and whole lines of the output are written at a time.
void RowProduct::multiply_block(int64_t row_count, int64_t panel_begin, int64_t panel_end, const float* right,
                                const Epilogue& epilogue, const Workspace& work) const {
  const bool keeps = kept_tiles() > 0;
  for (int64_t panel = panel_begin; panel < panel_end && keeps; ++panel)
    for (const DepthBlock& block : depth_blocks_)
      multiply_panel(block, 0, row_count, panel, right, epilogue, work);
  if (keeps) return;
  for (const DepthBlock& block : depth_blocks_) {
    const int64_t floats =
        (panel_end - panel_begin) * (block.tap_end - block.tap_begin) * block.length * tile_columns;
    const int64_t rows = floats <= max_shared_panels ? tile_rows : row_count;
    for (int64_t row = 0; row < row_count; row += rows)
      for (int64_t panel = panel_begin; panel < panel_end; ++panel)
        multiply_panel(block, row, std::min(row + rows, row_count), panel, right, epilogue, work);
  }
}

// Where rows lie one after another, what the sums from `offset` on read of the tile of rows after the next:
// the processor itself does not see that rows which are read side by side are one run.
Ahead RowProduct::ahead_of(const float* row, int64_t offset, bool first_panel) const {
  constexpr int64_t step = tile_rows * int64_t{sizeof(float)};
  const auto* const from = reinterpret_cast<const std::byte*>(row);
  const bool one_run = pitch_ && pitch_->left == lattice_.depth && types_.left == ElementType::f32;
  return first_panel && one_run ? Ahead{from + step * (2 * lattice_.depth + offset), step} : Ahead{from, 0};
}

void RowProduct::multiply_panel(const DepthBlock& block, int64_t row_begin, int64_t row_end, int64_t panel,
                                const float* right, const Epilogue& epilogue, const Workspace& work) const {
  const int64_t taps = lattice_.taps(), column = panel * tile_columns;
  const int64_t width = panel_width(lattice_.columns, column);
  TileTask task{};
  task.taps = block.tap_end - block.tap_begin;
  task.offset = block.begin;
  task.depth = block.length;
  task.panel_step = lattice_.depth * width;
  task.panel =
      right + column * taps * lattice_.depth + (block.tap_begin * lattice_.depth + block.begin) * width;
  task.first_column = column;
  task.columns = static_cast<int>(std::min<int64_t>(tile_columns, lattice_.columns - column));
  task.rectify = block.last && epilogue.rectify;
  task.slope = epilogue.slope;
  task.streams = work.streams;
  float bias[tile_columns];
  if (block.first) {
    task.start = epilogue.bias ? epilogue.bias + column : zeros_.data();
    if (epilogue.bias && task.columns < tile_columns) {
      std::fill(std::copy_n(epilogue.bias + column, task.columns, bias), bias + tile_columns, 0.0f);
      task.start = bias;
    }
  }
  // After part p, the sums of trees of parts that end with it are added: as many as p ends in ones.
  const int levels = block.last ? std::countr_one(static_cast<unsigned>(block.part)) : 0;
  const bool keeps = kept_tiles() > 0, to_out = !keeps || (block.last && block.part == parts_ - 1);
  const auto kept = [&](int level, int64_t row) {
    return work.kept + (level * blocks_.rows + row) * tile_columns;
  };
  task.addend_count = levels;
  const auto& multiply = tile_functions_of(types_.out, task.columns);
  for (int64_t row = row_begin; row < row_end; row += tile_rows) {
    task.left = work.left + row * taps + block.tap_begin * tile_rows;
    task.ahead = ahead_of(*task.left, block.begin, panel == 0);
    task.out = work.out + row;
    for (int level = 0; level < levels; ++level) task.addends[level] = kept(level, row);
    if (keeps) task.from = kept(kept_tiles() - 1, row);
    if (!to_out) task.kept = kept(block.last ? levels : kept_tiles() - 1, row);
    multiply[std::min<int64_t>(tile_rows, row_end - row)](task);
  }
}

void RowProduct::run(const float* left, const float* right, float* out, const Epilogue& epilogue,
                     std::byte* scratch) const {
  const int64_t rows = lattice_.rows(), panels = divide_up(lattice_.columns, tile_columns);
  const int64_t items = blocks_.count * blocks_.column_parts, threads = compute_threads();
  const bool streams = streams_to(out);
  ItemShares shares(items, threads);
  parallel_for(threads, [&](int64_t thread) {
    for (int64_t item = shares.take(thread); item >= 0; item = shares.take(thread)) {
      const int64_t row_begin = item / blocks_.column_parts * blocks_.rows;
      const int64_t row_end = std::min(rows, row_begin + blocks_.rows);
      const int64_t part = item % blocks_.column_parts;
      Workspace work = workspace(scratch, static_cast<int>(thread), streams);
      point_to_rows(left, out, row_begin, row_end, work);
      if (types_.left != ElementType::f32) widen_rows(row_end - row_begin, work);
      multiply_block(row_end - row_begin, panels * part / blocks_.column_parts,
                     panels * (part + 1) / blocks_.column_parts, right, epilogue, work);
    }
    if (streams) native::finish_streaming();
  });
}

}  // namespace cortado::lowering
