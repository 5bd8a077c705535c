#include "cortado/kernels/pairs/weight_product.h"

#include <algorithm>
#include <array>

#include "cortado/base/item_shares.h"
#include "cortado/kernels/lowering/lattice.h"
#include "cortado/kernels/lowering/partitions.h"

namespace cortado::pairs {

namespace {

using lowering::divide_up;
using lowering::round_up;

constexpr int64_t block_bytes = 4 << 20;        // of packed operands: a share of the last-level cache
constexpr int64_t own_block_bytes = 512 << 10;  // the same of one thread: near its L2 cache
constexpr int64_t chunk_words = 256;            // times tile_columns: a panel's part in cache
constexpr int64_t pack_words = 16;              // packed at a time, so that both sides stay in the L1 cache

// The sums of a tile over a chunk of words.
struct TileTask {
  const Word *tile, *panel;
  int64_t words;
  float* to;  // [tile_rows], `step` apart
  int64_t step;
  int64_t last;  // columns of the last vector
  bool first;    // overwrite `to` rather than add to it
  lowering::Ahead ahead;
};

// Rows of an operand that are packed: their pairs, each with an even and an odd row.
struct PackTask {
  const bf16 *even[pack_words], *odd[pack_words];  // odd: null where there is none
  int64_t pairs, channels;
};

CORTADO_BEGIN_PAIRS

struct PackedTile {
  const Word* tile;
  [[gnu::always_inline]] Word word(int r, int64_t k) const { return tile[k * tile_rows + r]; }
};

// What is in `to` is added last: sums from zero round less.
template <int Rows, int Vectors>
void sum_tile(const TileTask& task) {
  Tile<Rows, Vectors> tile;
  float* const to = task.to;
  const int64_t step = task.step, last = task.last;
  const bool first = task.first;
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) tile.sum[r][v] = Floats{};
  tile.multiply(PackedTile{task.tile}, task.panel, task.words, task.ahead);
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      const int64_t columns = v == Vectors - 1 ? last : lanes;
      float* const at = to + r * step + v * lanes;
      store_first(at, first ? tile.sum[r][v] : load_first(at, columns) + tile.sum[r][v], columns);
    }
}

// Both halves of the words of channels [channel, channel + 32) of a pair.
struct WordsOfPair {
  Words first, last;
};
[[gnu::always_inline]] inline WordsOfPair words_of_pair(const PackTask& task, int64_t pair, int64_t channel) {
  const int64_t count = std::min<int64_t>(tile_columns, task.channels - channel);
  const Halves even = load_first(task.even[pair] + channel, count);
  const Halves odd = task.odd[pair] ? load_first(task.odd[pair] + channel, count) : Halves{};
  return {first_words(even, odd), last_words(even, odd)};
}

// To panels that are `step` words apart.
void pack_panels(const PackTask& task, Word* to, int64_t step) {
  for (int64_t channel = 0; channel < task.channels; channel += tile_columns, to += step)
    for (int64_t pair = 0; pair < task.pairs; ++pair) {
      const WordsOfPair words = words_of_pair(task, pair, channel);
      store(to + pair * tile_columns, words.first);
      store(to + pair * tile_columns + lanes, words.last);
    }
}

// To tiles that are `step` words apart.
void pack_tiles(const PackTask& task, Word* to, int64_t step) {
  constexpr int tiles_at_once = tile_columns / tile_rows;
  using Quarter = VectorOf<uint32_t, tile_rows>;
  for (int64_t channel = 0; channel < task.channels; channel += tile_columns, to += tiles_at_once * step) {
    const int64_t tiles = std::min<int64_t>(tiles_at_once, divide_up(task.channels - channel, tile_rows));
    for (int64_t pair = 0; pair < task.pairs; ++pair) {
      const WordsOfPair words = words_of_pair(task, pair, channel);
      Quarter quarter[tiles_at_once];
      std::memcpy(quarter, &words, sizeof(words));
      for (int64_t tile = 0; tile < tiles; ++tile) store(to + tile * step + pair * tile_rows, quarter[tile]);
    }
  }
}

// sums[0, tile_rows) of all words of a tile, two pairs at a time.
void sum_words(const Word* tile, int64_t words, float* sums) {
  constexpr uint32_t ones = 0x3F803F80;
  Floats sum{};
  int64_t k = 0;
  for (; k + 1 < words; k += 2) sum = dot(sum, load<Words>(tile + k * tile_rows), Words{} + ones);
  for (int r = 0; r < tile_rows; ++r) sums[r] = sum[r] + sum[r + tile_rows];
  for (; k < words; ++k)
    for (int r = 0; r < tile_rows; ++r)
      sums[r] += to_float({static_cast<uint16_t>(tile[k * tile_rows + r])}) +
                 to_float({static_cast<uint16_t>(tile[k * tile_rows + r] >> 16)});
}

CORTADO_END_PAIRS

using SumFunction = void (*)(const TileTask&);
template <int Vectors, int... i>
constexpr std::array<SumFunction, tile_rows + 1> sum_functions(std::integer_sequence<int, i...>) {
  return {nullptr, sum_tile<i + 1, Vectors>...};
}
constexpr auto sum_rows_of_tile = sum_functions<tile_vectors>(std::make_integer_sequence<int, tile_rows>());
constexpr auto sum_rows_of_narrow_tile = sum_functions<1>(std::make_integer_sequence<int, tile_rows>());

// `row` is the first of them, of `end`.
PackTask pack_task(const Rows& rows, bool dense, const bf16* tensor, int64_t row, int64_t end) {
  PackTask task{.even = {}, .odd = {}, .pairs = 0, .channels = rows.channels};
  const auto at = [&](int64_t i) { return tensor + (dense ? i * rows.channels : rows.at(i)); };
  for (; task.pairs < pack_words && row < end; ++task.pairs, row += 2) {
    task.even[task.pairs] = at(row);
    task.odd[task.pairs] = row + 1 < end ? at(row + 1) : nullptr;
  }
  return task;
}

}  // namespace

WeightProduct::WeightProduct(const PointwiseRows& rows)
    : rows_(rows),
      dense_(rows.image.dense()),
      panels_(divide_up(rows.image.channels, tile_columns)),
      tiles_(divide_up(rows.windows.channels, tile_rows)) {
  choose_blocks();
}

void WeightProduct::choose_blocks() {
  const int64_t threads = compute_threads(), count = rows_.image.count();
  if (lowering::sums_apart(threads, gradient_elements() * int64_t{sizeof(float)}, count)) parts_ = threads;
  const int64_t word_bytes = (panels_ * tile_columns + tiles_ * tile_rows) * int64_t{sizeof(Word)};
  const int64_t most = std::max(pack_words, (parts_ > 1 ? own_block_bytes : block_bytes) / word_bytes);
  const int64_t words = divide_up(divide_up(count, 2), parts_);
  block_words_ = round_up(divide_up(words, divide_up(words, most)), pack_words);
  tiles_at_once_ = divide_up(tiles_, std::max<int64_t>(1, 4 * threads / panels_));
}

int64_t WeightProduct::part_bytes() const {
  const int64_t words = block_words_ * (panels_ * tile_columns + tiles_ * tile_rows);
  const int64_t sums = parts_ > 1 ? gradient_elements() + tiles_ * tile_rows : 0;
  return round_up((words + sums) * int64_t{sizeof(float)}, 64);
}

size_t WeightProduct::scratch_bytes() const { return static_cast<size_t>(parts_ * part_bytes()); }

// The first part sums where the result is wanted.
WeightProduct::Part WeightProduct::part(int64_t index, std::byte* scratch, float* gradient,
                                        float* bias) const {
  auto* const panels = reinterpret_cast<Word*>(scratch + index * part_bytes());
  Word* const tiles = panels + block_words_ * panels_ * tile_columns;
  auto* const sums = reinterpret_cast<float*>(tiles + block_words_ * tiles_ * tile_rows);
  Part part{panels, tiles, gradient, bias};
  if (index > 0 && gradient) part.gradient = sums;
  if (index > 0 && bias) part.bias = sums + gradient_elements();
  return part;
}

void WeightProduct::pack(Range rows, const Operands& operands, const Part& part) const {
  const int64_t step = 2 * pack_words;
  share_items(divide_up(rows.size(), step), [&](int64_t, int64_t item) {
    const int64_t row = rows.begin + item * step, word = item * pack_words;
    pack_panels(pack_task(rows_.image, dense_, operands.image, row, rows.end),
                part.panels + word * tile_columns, block_words_ * tile_columns);
    pack_tiles(pack_task(rows_.windows, true, operands.windows, row, rows.end), part.tiles + word * tile_rows,
               block_words_ * tile_rows);
  });
}

struct WeightProduct::Block {
  int64_t words;
  bool first;
  lowering::NextBlock next;
};

// Rows of the image that are not dense are not fetched.
lowering::NextBlock WeightProduct::next(Range rows, const Operands& operands) const {
  const auto bytes = [&](const Rows& of) { return rows.size() * of.channels * int64_t{sizeof(bf16)}; };
  return {operands.image + rows.begin * rows_.image.channels,
          operands.windows + rows.begin * rows_.windows.channels, dense_ ? bytes(rows_.image) : 0,
          bytes(rows_.windows)};
}

void WeightProduct::sum_tiles(int64_t panel, Range tiles, const Block& block, const Part& part) const {
  const int64_t words = block.words;
  const bool first = block.first;
  const int64_t depth = rows_.image.channels, column = panel * tile_columns, outputs = rows_.windows.channels;
  const int64_t columns = std::min<int64_t>(tile_columns, depth - column);
  const auto& sum = columns > lanes ? sum_rows_of_tile : sum_rows_of_narrow_tile;
  const int64_t before = (panel * tiles_ + tiles.begin) * words;
  for (int64_t word = 0; word < words && part.gradient; word += chunk_words)
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
      const int64_t count = std::min(chunk_words, words - word);
      const int64_t done = before + word * tiles.size() + (tile - tiles.begin) * count;
      sum[std::min<int64_t>(tile_rows, outputs - tile * tile_rows)](
          {.tile = part.tiles + (tile * block_words_ + word) * tile_rows,
           .panel = part.panels + (panel * block_words_ + word) * tile_columns,
           .words = count,
           .to = part.gradient + tile * tile_rows * depth + column,
           .step = depth,
           .last = columns > lanes ? columns - lanes : columns,
           .first = first && word == 0,
           .ahead = block.next.ahead(done, panels_ * tiles_ * words)});
    }
  for (int64_t tile = tiles.begin; tile < tiles.end && panel == 0 && part.bias; ++tile) {
    float sums[tile_rows];
    sum_words(part.tiles + tile * block_words_ * tile_rows, words, sums);
    for (int64_t r = 0; r < std::min<int64_t>(tile_rows, outputs - tile * tile_rows); ++r) {
      float& bias = part.bias[tile * tile_rows + r];
      bias = first ? sums[r] : bias + sums[r];
    }
  }
}

void WeightProduct::sum_block(const Block& block, const Part& part) const {
  const int64_t items = divide_up(tiles_, tiles_at_once_);
  share_items(panels_ * items, [&](int64_t, int64_t item) {
    const int64_t tile = item % items * tiles_at_once_;
    sum_tiles(item / items, {tile, std::min(tiles_, tile + tiles_at_once_)}, block, part);
  });
}

void WeightProduct::sum_rows(Range rows, const Operands& operands, const Part& part) const {
  for (int64_t row = rows.begin; row < rows.end; row += 2 * block_words_) {
    const int64_t end = std::min(rows.end, row + 2 * block_words_);
    pack({row, end}, operands, part);
    const Range after{end, std::min(rows.end, end + 2 * block_words_)};
    sum_block({divide_up(end - row, 2), row == rows.begin, next(after, operands)}, part);
  }
}

void WeightProduct::add_parts(float* gradient, float* bias, std::byte* scratch) const {
  const auto add = [&](float* sums, float* Part::*of, int64_t count) {
    parallel_ranges(sums ? count : 0, [&](int64_t begin, int64_t end) {
      for (int64_t index = 1; index < parts_; ++index) {
        const float* const addends = part(index, scratch, gradient, bias).*of;
        for (int64_t i = begin; i < end; ++i) sums[i] += addends[i];
      }
    });
  };
  add(gradient, &Part::gradient, gradient_elements());
  add(bias, &Part::bias, rows_.windows.channels);
}

void WeightProduct::run(const Operands& operands, float* gradient, float* bias, std::byte* scratch) const {
  const int64_t count = rows_.image.count();
  if (parts_ == 1) return sum_rows({0, count}, operands, part(0, scratch, gradient, bias));
  lowering::for_each_partition(static_cast<int>(parts_), [&](int i) {
    sum_rows({count * i / parts_, count * (i + 1) / parts_}, operands, part(i, scratch, gradient, bias));
  });
  add_parts(gradient, bias, scratch);
}

}  // namespace cortado::pairs
