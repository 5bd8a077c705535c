#include "cortado/kernels/winograd/filters.h"

#include <algorithm>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/winograd/transforms.h"

namespace cortado::winograd {

using lowering::divide_up;
using lowering::load;
using lowering::padded_columns;
using lowering::panel_width;
using lowering::store;
using lowering::tile_columns;
using lowering::vector_lanes;
using lowering::WeightPanels;

namespace {

constexpr int64_t max_chunk = 20 << 20;  // bytes

}  // namespace

template <typename F>
int64_t FilterPanels<F>::width(int64_t panel) const {
  return panel_width(columns, panel * tile_columns);
}

template <typename F>
int64_t FilterPanels<F>::first_of(int64_t panel) const {
  return panel * depth * tile_columns;
}

// One more row of a whole panel, so that the strides between elements are no multiples of a page.
template <typename F>
int64_t FilterPanels<F>::element_stride() const {
  return padded_columns(columns) * depth + tile_columns;
}

template <typename F>
int64_t FilterPanels<F>::elements() const {
  return F::positions * element_stride();
}

template <typename F>
int64_t FilterPanels<F>::chunks() const {
  int64_t chunks = 1;
  while (elements() / chunks * static_cast<int64_t>(sizeof(float)) > max_chunk &&
         columns % (2 * chunks * tile_columns) == 0)
    chunks *= 2;
  return chunks;
}

template <typename F>
void FilterPanels<F>::transform(const WeightPanels& panels, const float* weight, int64_t first,
                                float* to) const {
  const int64_t stride = element_stride();
  parallel_for(divide_up(columns, tile_columns) * depth, [&](int64_t row) {
    const int64_t panel = row / depth, k = row % depth, row_width = width(panel);
    const float* from = weight + (first + panel * tile_columns) * panels.taps * depth + k * row_width;
    float* out = to + first_of(panel) + k * row_width;
    for (int64_t lane = 0; lane < row_width; lane += vector_lanes)
      winograd::transform<F::taps, F::span, F::filter>(
          [&](int i, int j) { return load(from + (F::taps * i + j) * depth * row_width + lane); },
          [&](int i, int j, Vector v) { store(out + (F::span * i + j) * stride + lane, v); });
  });
}

template <typename F>
void FilterPanels<F>::transform_turned(const WeightPanels& panels, const float* weight, int64_t first,
                                       float* to) const {
  const int64_t outputs = panels.columns, inputs = panels.depth, stride = element_stride();
  parallel_for(divide_up(columns, tile_columns) * panels.panels(), [&](int64_t item) {
    const int64_t output = item % panels.panels() * tile_columns;
    const int64_t panel = item / panels.panels(), input = panel * tile_columns, height = width(panel);
    const int64_t rows = std::min<int64_t>(tile_columns, columns - input);
    const int64_t lanes = std::min<int64_t>(tile_columns, outputs - output);
    const int64_t from_width = panel_width(outputs, output);
    alignas(64) float square[F::positions][tile_columns][tile_columns];
    for (int64_t row = 0; row < height; ++row)
      for (int64_t lane = 0; lane < from_width; lane += vector_lanes) {
        const float* from =
            weight + output * panels.taps * inputs + (first + input + row) * from_width + lane;
        const auto tap = [&](int i, int j) {
          return row < rows ? load(from + (panels.taps - 1 - F::taps * i - j) * inputs * from_width)
                            : Vector{};
        };
        winograd::transform<F::taps, F::span, F::filter>(
            tap, [&](int i, int j, Vector v) { store(&square[F::span * i + j][row][lane], v); });
      }
    for (int element = 0; element < F::positions; ++element)
      lowering::transpose(square[element][0], tile_columns,
                          to + element * stride + first_of(panel) + output * height, height, height, lanes);
  });
}

template <typename F>
void FilterPanels<F>::finish(const WeightPanels& panels, const float* sums, float* gradient) const {
  const int64_t rows = panels.depth, stride = element_stride();
  parallel_for(panels.panels() * rows, [&](int64_t row) {
    const int64_t panel = row / rows, k = row % rows, row_width = width(panel);
    const float* from = sums + first_of(panel) + k * row_width;
    float* to = gradient + panel * tile_columns * panels.taps * rows + k * row_width;
    for (int64_t lane = 0; lane < row_width; lane += vector_lanes)
      winograd::transform<F::span, F::taps, F::finish_filter>(
          [&](int i, int j) { return load(from + (F::span * i + j) * stride + lane); },
          [&](int i, int j, Vector v) { store(to + (F::taps * i + j) * rows * row_width + lane, v); });
  });
}

template struct FilterPanels<F2x2>;
template struct FilterPanels<F4x4>;
template struct FilterPanels<F2x2Of5x5>;
template struct FilterPanels<F4x4Of5x5>;

}  // namespace cortado::winograd
