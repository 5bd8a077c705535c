#pragma once

#include <cstdint>

#include "cortado/kernels/pairs/dot.h"

namespace cortado::pairs {

// The right operand of a RowProduct, depth x columns (depth even), in panels
// [columns / tile_columns][depth / 2][tile_columns] of words {(k, column), (k + 1, column)}, the last one
// padded with zeros. Rounded to bf16.
int64_t panel_words(int64_t depth, int64_t columns);

// From rows of `from`: element (k, column) is from[k * columns + column].
void pack_rows(const float* from, int64_t depth, int64_t columns, Word* to);
// From its columns: element (k, column) is from[column * depth + k].
void pack_columns(const float* from, int64_t depth, int64_t columns, Word* to);

}  // namespace cortado::pairs
