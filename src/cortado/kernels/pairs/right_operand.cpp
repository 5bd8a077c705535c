#include "cortado/kernels/pairs/right_operand.h"

#include <algorithm>

#include "cortado/base/item_shares.h"
#include "cortado/kernels/lowering/lattice.h"
#include "cortado/kernels/lowering/panels.h"

namespace cortado::pairs {

namespace {

constexpr int64_t chunk = lanes;  // words of a column that are packed at a time

CORTADO_BEGIN_PAIRS

void pack_chunk_of_rows(const float* from, int64_t words, int64_t columns, int64_t column, Word* to) {
  for (int64_t k = 0; k < words; ++k, to += tile_columns)
    for (int v = 0; v < tile_vectors; ++v) {
      const int64_t first = column + v * lanes, count = std::clamp<int64_t>(columns - first, 0, lanes);
      const float* const row = from + 2 * k * columns + first;
      const Halves both = narrowed(load_first(row, count), load_first(row + columns, count));
      store(to + v * lanes, words_of_halves(both));
    }
}

void pack_chunk_of_columns(const float* from, int64_t words, int64_t depth, int64_t columns, Word* to) {
  float by_columns[tile_columns][chunk], by_words[chunk][tile_columns];
  const int64_t first = std::min<int64_t>(2 * words, lanes), rest = 2 * words - first;
  for (int64_t column = 0; column < tile_columns; ++column, from += depth) {
    Halves numbers{};
    if (column < columns) numbers = narrowed(load_first(from, first), load_first(from + lanes, rest));
    store(by_columns[column], numbers);
  }
  lowering::transpose(by_columns[0], chunk, by_words[0], tile_columns, tile_columns, chunk);
  std::memcpy(to, by_words, static_cast<size_t>(words * tile_columns) * sizeof(Word));
}

CORTADO_END_PAIRS

// Calls pack(k, words, panel) for chunks of `words` words from word k of a panel on.
template <typename Pack>
void for_each_chunk(int64_t depth, int64_t columns, Pack&& pack) {
  const int64_t words = depth / 2, chunks = lowering::divide_up(words, chunk);
  share_items(chunks * lowering::divide_up(columns, tile_columns), [&](int64_t, int64_t item) {
    const int64_t k = item % chunks * chunk;
    pack(k, std::min(chunk, words - k), item / chunks);
  });
}

}  // namespace

int64_t panel_words(int64_t depth, int64_t columns) {
  return depth / 2 * lowering::round_up(columns, tile_columns);
}

void pack_rows(const float* from, int64_t depth, int64_t columns, Word* to) {
  for_each_chunk(depth, columns, [&](int64_t k, int64_t words, int64_t panel) {
    pack_chunk_of_rows(from + 2 * k * columns, words, columns, panel * tile_columns,
                       to + (panel * depth / 2 + k) * tile_columns);
  });
}

void pack_columns(const float* from, int64_t depth, int64_t columns, Word* to) {
  for_each_chunk(depth, columns, [&](int64_t k, int64_t words, int64_t panel) {
    const int64_t column = panel * tile_columns;
    pack_chunk_of_columns(from + column * depth + 2 * k, words, depth, columns - column,
                          to + (panel * depth / 2 + k) * tile_columns);
  });
}

}  // namespace cortado::pairs
