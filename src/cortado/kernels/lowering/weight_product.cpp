#include "cortado/kernels/lowering/weight_product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/lowering/partitions.h"
#include "cortado/kernels/lowering/typed_vectors.h"

namespace cortado::lowering {

namespace {

constexpr int64_t block_bytes = 4 << 20;      // of packed operands: a share of the last-level cache
constexpr int64_t own_block_bytes = 1 << 20;  // the same of one thread: near its L2 cache
constexpr int64_t few_channels = 96;          // on either side, for rows to be read where they lie
constexpr int64_t in_place_rows = 128;        // of them: both operands' part stays in cache
constexpr int64_t chunk_rows = 512;           // times tile_columns floats: a panel's part in cache

struct SumTask {
  const float* left;
  int64_t left_step;  // between rows
  const float* right;
  float* to;   // [rows][panel_width]
  bool first;  // overwrite `to` rather than add to it
  Ahead ahead;
};

// Rows that are not packed: of the right operand, too, each is `right_step` after the one before. Its last
// vector is whole, or half of one.
template <bool whole>
struct RowsInPlace {
  int64_t count, right_step;
};

// Inlined, as the microkernel, so that the tile stays in registers.
template <int Rows, int Vectors, bool whole>
[[gnu::always_inline]] inline void add_products(Tile<Rows, Vectors>& tile, const SumTask& task,
                                                const RowsInPlace<whole>& rows) {
  multiply_columns<Rows, whole>(tile, task.left, task.left_step, rows.count, task.right, rows.right_step,
                                task.ahead);
}

template <int Rows, int Vectors, typename Segment>
[[gnu::always_inline]] inline void add_products(Tile<Rows, Vectors>& tile, const SumTask& task,
                                                const std::vector<Segment>& segments) {
  Ahead ahead = task.ahead;
  for (const Segment& segment : segments) {
    multiply_columns<Rows>(tile, task.left + segment.left, task.left_step, segment.length,
                           task.right + segment.right, tile_columns, ahead);
    ahead.from += ahead.step * segment.length;
  }
}

template <int Rows, int Vectors, typename Segments>
void sum_tile(const SumTask& task, const Segments& segments) {
  constexpr int64_t width = Vectors * vector_lanes;
  Tile<Rows, Vectors> tile;
  if (task.first) {
    tile.set_rows(nullptr);
  } else {
    for (int r = 0; r < Rows; ++r) tile.load_row(r, task.to + r * width);
  }
  add_products(tile, task, segments);
  for (int r = 0; r < Rows; ++r) tile.store_row(r, task.to + r * width);
}

template <typename Segments, int Vectors, int... I>
constexpr auto sum_functions(std::integer_sequence<int, I...>) {
  using Function = void (*)(const SumTask&, const Segments&);
  return std::array<Function, sizeof...(I) + 1>{nullptr, sum_tile<I + 1, Vectors, Segments>...};
}

template <typename Segments, int Vectors>
constexpr auto sum_tile_of_rows =
    sum_functions<Segments, Vectors>(std::make_integer_sequence<int, tile_rows>());

// The functions for a panel of so many columns.
template <typename Segments>
const auto& sum_tile_of(int64_t columns) {
  return columns > vector_lanes ? sum_tile_of_rows<Segments, tile_vectors> : sum_tile_of_rows<Segments, 1>;
}

// sums[0, columns) += sum of rows, `step` apart.
void add_rows(const float* row, int64_t rows, int64_t step, int64_t columns, float* sums) {
  int64_t c = 0;
  for (; c + vector_lanes <= columns; c += vector_lanes) {
    Vector sum{};
    for (int64_t i = 0; i < rows; ++i) sum += load(row + i * step + c);
    store(sums + c, sum + load(sums + c));
  }
  if (c == columns) return;
  Vector sum{};
  for (int64_t i = 0; i < rows; ++i) sum += load_first(row + i * step + c, columns - c);
  store_first(sums + c, sum + load_first(sums + c, columns - c), columns - c);
}

// Rows `step` floats apart.
struct FloatRows {
  const float* first;
  int64_t step;
};

// `rows` of `width` elements, `pitch` apart: where they lie, or widened.
FloatRows as_floats(const float* tensor, ElementType type, Range rows, int64_t pitch, int64_t width,
                    float* copy) {
  const float* const first = from_element(tensor, type, rows.begin * pitch);
  if (type == ElementType::f32) return {first, pitch};
  for (int64_t row = 0; row < rows.size(); ++row)
    widen(elements<bf16>(first) + row * pitch, copy + row * width, width);
  return {copy, width};
}

}  // namespace

WeightProduct::Operands WeightProduct::Operands::from_channels(int64_t left_channel,
                                                               int64_t out_channel) const {
  Operands part = *this;
  part.left += left_channel;
  part.out_gradient += out_channel;
  if (part.rectified) part.rectified += out_channel;
  if (part.masked) part.masked += out_channel;
  return part;
}

WeightProduct::WeightProduct(Lattice lattice, int64_t all_columns, Types types)
    : lattice_(std::move(lattice)),
      all_columns_(std::max(all_columns, lattice_.columns)),
      types_(types),
      tiles_(divide_up(lattice_.depth, tile_rows)),
      tile_height_(tiles_ > 0 ? divide_up(lattice_.depth, tiles_) : 0),
      panels_(divide_up(lattice_.columns, tile_columns)),
      pitch_(lattice_.pitch()) {
  choose_parts();
  choose_blocks();
  parts_ = std::clamp<int64_t>(parts_, 1, std::max<int64_t>(1, std::ssize(blocks_)));
  const bool narrow = std::min(lattice_.depth, lattice_.columns) <= few_channels;
  const bool alone = parts_ > 1 || compute_threads() == 1;  // no thread needs another's rows
  in_place_ = pitch_ && narrow && alone && all_columns == 0 && lattice_.rows() > 0 &&
              lattice_.columns % (vector_lanes / 2) == 0;
}

void WeightProduct::choose_parts() {
  const int64_t threads = compute_threads();
  if (sums_apart(threads, gradient_elements() * int64_t{sizeof(float)}, lattice_.rows())) parts_ = threads;
}

int64_t WeightProduct::gradient_elements() const {
  return lattice_.taps() * lattice_.depth * padded_columns(lattice_.columns);
}

int64_t WeightProduct::copies() const {
  const LatticeAxis &d = lattice_.axis[0], &h = lattice_.axis[1], &w = lattice_.axis[2];
  return static_cast<int64_t>(d.offset.size() * (shifts_lines() ? 1 : h.offset.size()) * w.offset.size());
}

int64_t WeightProduct::packed_lines(int64_t out_lines) const {
  const LatticeAxis& h = lattice_.axis[1];
  return shifts_lines() ? out_lines + h.offset.back() - h.offset.front() : out_lines;
}

int64_t WeightProduct::line_elements() const { return lattice_.axis[2].rows * tile_height_; }

void WeightProduct::choose_blocks() {
  if (lattice_.rows() == 0) return;
  const LatticeAxis &d = lattice_.axis[0], &h = lattice_.axis[1], &w = lattice_.axis[2];
  const int64_t row_bytes =
      (copies() * tiles_ * tile_height_ + round_up(all_columns_, tile_columns)) * sizeof(float);
  const int64_t bytes = parts_ > 1 ? own_block_bytes : block_bytes;
  const int64_t block_lines = std::max<int64_t>(1, bytes / (row_bytes * w.rows));
  const int64_t parts = divide_up(h.rows, block_lines);  // of a plane
  int64_t planes = parts > 1 ? 1 : std::max<int64_t>(1, block_lines / h.rows);
  if (parts_ > 1)  // as many blocks for each thread
    planes = divide_up(lattice_.batch * d.rows, round_up(divide_up(lattice_.batch * d.rows, planes), parts_));
  for (int64_t plane = 0; plane < lattice_.batch * d.rows; ++plane)
    for (int64_t part = 0; part < parts; ++part) {
      if (parts > 1 || plane % planes == 0) {
        const int64_t begin = blocks_.empty() ? 0 : blocks_.back().begin + blocks_.back().rows;
        blocks_.push_back({.pieces = {}, .first_row = {}, .begin = begin});
      }
      Block& block = blocks_.back();
      const Piece piece{plane / d.rows, plane % d.rows, h.rows * part / parts, h.rows * (part + 1) / parts};
      block.pieces.push_back(piece);
      block.first_row.push_back(block.rows);
      block.rows += (piece.end - piece.begin) * w.rows;
      block_rows_ = std::max(block_rows_, block.rows);
      block_pieces_ = std::max(block_pieces_, static_cast<int64_t>(block.pieces.size()));
    }
  lines_ = packed_lines(divide_up(h.rows, parts));
}

int64_t WeightProduct::part_elements() const {
  const int64_t packed =
      std::max(block_pieces_ * piece_elements() + panels_ * (block_rows_ + 1) * tile_columns,
               in_place_ ? in_place_rows * (lattice_.depth + lattice_.columns) : 0);
  return round_up(packed + (parts_ > 1 ? gradient_elements() + panels_ * tile_columns : 0), tile_columns);
}

size_t WeightProduct::scratch_bytes() const { return parts_ * part_elements() * sizeof(float); }

// The memory of a part, sums among it.
WeightProduct::Part WeightProduct::part(int64_t index, float* memory) const {
  float* left = memory + index * part_elements();
  float* right = left + block_pieces_ * piece_elements();
  float* gradient = right + panels_ * (block_rows_ + 1) * tile_columns;
  return {left, right, gradient, gradient + gradient_elements()};
}

void WeightProduct::add_segments(Chunk& chunk, const Block& block, size_t index, int64_t begin,
                                 int64_t end) const {
  const LatticeAxis &d = lattice_.axis[0], &h = lattice_.axis[1], &w = lattice_.axis[2];
  const Piece& piece = block.pieces[index];
  int64_t tap = 0;
  for (size_t td = 0; td < d.offset.size(); ++td)
    for (size_t th = 0; th < h.offset.size(); ++th)
      for (size_t tw = 0; tw < w.offset.size(); ++tw, ++tap) {
        const int64_t pd = piece.d * d.step + d.offset[td];
        // Output lines whose input line lies inside the tensor.
        const int64_t low = std::max(begin, divide_up(std::max<int64_t>(0, -h.offset[th]), h.step));
        const int64_t high = std::min(end, divide_up(std::max<int64_t>(0, h.extent - h.offset[th]), h.step));
        if (pd < 0 || pd >= d.extent || low >= high) continue;
        const int64_t copy =
            shifts_lines() ? td * w.offset.size() + tw : (td * h.offset.size() + th) * w.offset.size() + tw;
        const int64_t line = low - piece.begin + (shifts_lines() ? h.offset[th] - h.offset.front() : 0);
        chunk.taps[tap].push_back({static_cast<int64_t>(index) * piece_elements() +
                                       copy * tiles_ * tile_elements() + line * line_elements(),
                                   (block.first_row[index] + (low - piece.begin) * w.rows) * tile_columns,
                                   (high - low) * w.rows});
      }
}

std::vector<WeightProduct::Chunk> WeightProduct::chunks_of(const Block& block) const {
  std::vector<Chunk> chunks;
  const int64_t width = lattice_.axis[2].rows;
  for (size_t index = 0; index < block.pieces.size(); ++index) {
    const Piece& piece = block.pieces[index];
    const int64_t lines = piece.end - piece.begin;
    const int64_t parts = std::min(lines, divide_up(lines * width, chunk_rows));
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = lines * part / parts, end = lines * (part + 1) / parts;
      const int64_t row = block.first_row[index] + begin * width;
      if (chunks.empty() || row + (end - begin) * width - chunks.back().row_begin > chunk_rows)
        chunks.push_back({row, row, std::vector<std::vector<Segment>>(lattice_.taps())});
      add_segments(chunks.back(), block, index, piece.begin + begin, piece.begin + end);
      chunks.back().row_end = row + (end - begin) * width;
    }
  }
  return chunks;
}

// The block after `block`, of those before `end`, where its rows are runs of memory.
NextBlock WeightProduct::after(int64_t block, int64_t end, const Operands& operands) const {
  if (!pitch_ || block + 1 == end) return next_rows({}, operands);
  const Block& next = blocks_[block + 1];
  return next_rows({next.begin, next.begin + next.rows}, operands);
}

NextBlock WeightProduct::next_rows(Range rows, const Operands& operands) const {
  const Lattice::Pitch pitch = pitch_.value_or(Lattice::Pitch{});
  const int64_t left = pitch.left * size_of(types_.left), out = pitch.out * size_of(types_.out_gradient);
  const auto at = [&](const float* operand, int64_t step) {
    return reinterpret_cast<const std::byte*>(operand) + rows.begin * step;
  };
  return {at(operands.left, left), at(operands.out_gradient, out), rows.size() * left, rows.size() * out};
}

void WeightProduct::sum_chunks(const std::vector<Chunk>& chunks, const Part& part, bool first,
                               const NextBlock& next) const {
  const int64_t taps = lattice_.taps(), depth = lattice_.depth;
  const int64_t rows = chunks.back().row_end, all = panels_ * tiles_ * rows;
  parallel_ranges(panels_ * tiles_, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin / tiles_; panel * tiles_ < end; ++panel) {
      const int64_t tile_begin = std::max<int64_t>(0, begin - panel * tiles_);
      const int64_t tile_end = std::min(tiles_, end - panel * tiles_);
      const float* panel_right = part.right + panel * block_rows_ * tile_columns;
      const int64_t column = panel * tile_columns, width = panel_width(lattice_.columns, column);
      const auto& sum = sum_tile_of<std::vector<Segment>>(lattice_.columns - column);
      for (const Chunk& chunk : chunks) {
        const bool overwrite = first && &chunk == &chunks.front();
        const int64_t count = chunk.row_end - chunk.row_begin;
        for (int64_t tile = tile_begin; part.gradient && tile < tile_end; ++tile) {
          const int64_t k = tile * tile_height_;
          const int64_t done = (panel * tiles_ + tile_begin) * rows +
                               chunk.row_begin * (tile_end - tile_begin) + (tile - tile_begin) * count;
          for (int64_t tap = 0; tap < taps; ++tap) {
            float* to = part.gradient + column * taps * depth + (tap * depth + k) * width;
            sum[std::min(tile_height_, depth - k)]({part.left + tile * tile_elements(), tile_height_,
                                                    panel_right, to, overwrite, next.ahead(done, all)},
                                                   chunk.taps[tap]);
          }
        }
        if (part.bias && tile_begin == 0)
          add_bias(panel_right + chunk.row_begin * tile_columns, chunk.row_end - chunk.row_begin,
                   tile_columns, panel, overwrite, part.bias);
      }
    }
  });
}

// The part of the bias' gradient that a panel's rows make.
void WeightProduct::add_bias(const float* right, int64_t rows, int64_t step, int64_t panel, bool first,
                             float* bias) const {
  const int64_t column = panel * tile_columns,
                count = std::min<int64_t>(tile_columns, lattice_.columns - column);
  if (first) std::fill_n(bias + column, count, 0.0f);
  add_rows(right, rows, step, count, bias + column);
}

void WeightProduct::sum_in_place(Range rows, const Operands& operands, const Part& part) const {
  const int64_t depth = lattice_.depth;
  for (int64_t row = rows.begin; row < rows.end; row += in_place_rows) {
    const int64_t count = std::min(in_place_rows, rows.end - row);
    const bool first = row == rows.begin;
    const int64_t end = row + count;
    const NextBlock next = next_rows({end, std::min(rows.end, end + in_place_rows)}, operands);
    float* const widened = part.left;
    const FloatRows left = as_floats(operands.left, types_.left, {row, end}, pitch_->left, depth, widened);
    const FloatRows gradient = as_floats(operands.out_gradient, types_.out_gradient, {row, end}, pitch_->out,
                                         lattice_.columns, widened + count * depth);
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const int64_t column = panel * tile_columns,
                    columns = std::min<int64_t>(tile_columns, lattice_.columns - column);
      const int64_t width = panel_width(lattice_.columns, column);
      const float* const right = gradient.first + column;
      const auto sum_rows = [&]<bool whole>(const RowsInPlace<whole>& in_place) {
        const auto& sum = sum_tile_of<RowsInPlace<whole>>(columns);
        for (int64_t k = 0; part.gradient && k < depth; k += tile_height_)
          sum[std::min(tile_height_, depth - k)](
              {left.first + k, left.step, right, part.gradient + column * depth + k * width, first,
               next.ahead((panel * tiles_ + k / tile_height_) * count, panels_ * tiles_ * count)},
              in_place);
      };
      if (columns % vector_lanes == 0) {
        sum_rows(RowsInPlace<true>{count, gradient.step});
      } else {
        sum_rows(RowsInPlace<false>{count, gradient.step});
      }
      if (part.bias) add_bias(right, count, gradient.step, panel, first, part.bias);
    }
  }
}

void WeightProduct::sum_blocks(Range blocks, const Operands& operands, const Part& part) const {
  for (int64_t i = blocks.begin; i < blocks.end; ++i) {
    pack_left(blocks_[i], operands.left, part.left);
    pack_gradient(blocks_[i], operands, part.right);
    sum_chunks(chunks_of(blocks_[i]), part, i == blocks.begin, after(i, blocks.end, operands));
  }
}

// The first part sums where the result is wanted.
void WeightProduct::run(const Operands& operands, float* gradient, float* bias_gradient,
                        std::byte* scratch) const {
  auto* memory = reinterpret_cast<float*>(scratch);
  const int64_t blocks = std::ssize(blocks_);
  const auto part_of = [&](int64_t index) {
    Part own = part(index, memory);
    if (index == 0 || !gradient) own.gradient = gradient;
    if (index == 0 || !bias_gradient) own.bias = bias_gradient;
    return own;
  };
  if (blocks == 0) {
    if (gradient) std::fill_n(gradient, gradient_elements(), 0.0f);
    if (bias_gradient) std::fill_n(bias_gradient, lattice_.columns, 0.0f);
  }
  const auto sum_share = [&](int i) {
    const bool in_place = in_place_ && !operands.rectified;
    const int64_t count = in_place ? lattice_.rows() : blocks;
    const Range share{count * i / parts_, count * (i + 1) / parts_};
    if (in_place) {
      sum_in_place(share, operands, part_of(i));
    } else {
      sum_blocks(share, operands, part_of(i));
    }
  };
  if (parts_ == 1) return sum_share(0);
  for_each_partition(static_cast<int>(parts_), sum_share);
  const auto add = [&](float* sums, float* Part::*of, int64_t count) {
    parallel_ranges(sums ? count : 0, [&](int64_t begin, int64_t end) {
      for (int64_t i = 1; i < parts_; ++i)
        for (int64_t at = begin; at < end; ++at) sums[at] += (part(i, memory).*of)[at];
    });
  };
  add(gradient, &Part::gradient, gradient_elements());
  add(bias_gradient, &Part::bias, lattice_.columns);
}

}  // namespace cortado::lowering
