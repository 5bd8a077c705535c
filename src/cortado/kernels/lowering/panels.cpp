#include "cortado/kernels/lowering/panels.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/microkernel.h"

namespace cortado::lowering {

namespace {

using Quad = float __attribute__((vector_size(16)));

void transpose_quad(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Quad row[4], pair[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&row[i], from + i * from_stride, sizeof(Quad));
  for (int i = 0; i < 2; ++i) {
    pair[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 0, 4, 1, 5);
    pair[i + 2] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 2, 6, 3, 7);
  }
  for (int i = 0; i < 2; ++i) {
    row[2 * i] = __builtin_shufflevector(pair[2 * i], pair[2 * i + 1], 0, 1, 4, 5);
    row[2 * i + 1] = __builtin_shufflevector(pair[2 * i], pair[2 * i + 1], 2, 3, 6, 7);
  }
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * to_stride, &row[i], sizeof(Quad));
}

}  // namespace

void transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
               int64_t columns) {
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t i = 0; i < whole_rows; i += 4)
    for (int64_t j = 0; j < whole_columns; j += 4)
      transpose_quad(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      to[j * to_stride + i] = from[i * from_stride + j];
}

WeightPanels::WeightPanels(const ConvolutionProblem& problem)
    : WeightPanels(problem.groups, problem.window_channels, problem.taps(), problem.image_channels, false) {}

WeightPanels::WeightPanels(int64_t groups, int64_t columns, int64_t taps, int64_t depth, bool transposed)
    : groups(groups), columns(columns), taps(taps), depth(depth), transposed(transposed) {}

int64_t WeightPanels::panels() const { return divide_up(columns, tile_columns); }
int64_t WeightPanels::group_elements() const { return taps * depth * padded_columns(columns); }

// Calls copy(own, canonical) with the offset of each element in both orders, panel by panel; canonical is
// negative for the padding.
template <typename Copy>
void WeightPanels::for_each_element(Copy&& copy) const {
  const int64_t size = taps * depth;
  parallel_for(groups * panels(), [&](int64_t item) {
    const int64_t group = item / panels(), first = item % panels() * tile_columns;
    const int64_t width = panel_width(columns, first), panel = group * group_elements() + first * size;
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t column = first; column < first + width; ++column) {
          const int64_t element = k * taps + tap;
          const int64_t canonical =
              transposed ? element * columns + column : (group * columns + column) * size + element;
          copy(panel + (tap * depth + k) * width + column - first, column < columns ? canonical : -1);
        }
  });
}

void WeightPanels::from_canonical(const float* canonical, float* own) const {
  for_each_element([&](int64_t to, int64_t from) { own[to] = from < 0 ? 0.0f : canonical[from]; });
}

void WeightPanels::to_canonical(const float* own, float* canonical) const {
  for_each_element([&](int64_t from, int64_t to) {
    if (to >= 0) canonical[to] = own[from];
  });
}

ParameterFormat WeightPanels::format() const {
  return {fmt::format("panels{}-g{}-t{}", tile_columns, groups, taps), elements(),
          [panels = *this](const float* from, float* to) { panels.from_canonical(from, to); },
          [panels = *this](const float* from, float* to) { panels.to_canonical(from, to); }};
}

}  // namespace cortado::lowering
