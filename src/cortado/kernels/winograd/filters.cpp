#include "cortado/kernels/winograd/filters.h"

#include <algorithm>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/winograd/transforms.h"

namespace cortado::winograd {

using lowering::divide_up;
using lowering::load;
using lowering::store;
using lowering::tile_columns;
using lowering::vector_lanes;
using lowering::WeightPanels;

int64_t FilterPanels::panel_elements() const { return depth * tile_columns; }
// One more row, so that the strides between elements are no multiples of a page.
int64_t FilterPanels::element_stride() const {
  return (divide_up(columns, tile_columns) * depth + 1) * tile_columns;
}
int64_t FilterPanels::elements() const { return positions * element_stride(); }

void transform_filters(const WeightPanels& panels, const float* weight, float* to) {
  const int64_t depth = panels.depth, stride = FilterPanels::forward(panels).element_stride();
  parallel_for(panels.panels() * depth, [&](int64_t row) {
    const float* from = weight + (row / depth * panels.taps * depth + row % depth) * tile_columns;
    for (int64_t lane = 0; lane < tile_columns; lane += vector_lanes)
      transform_filter(
          [&](int i, int j) { return load(from + (3 * i + j) * depth * tile_columns + lane); },
          [&](int element, Vector v) { store(to + element * stride + row * tile_columns + lane, v); });
  });
}

void transform_turned_filters(const WeightPanels& panels, const float* weight, float* to) {
  const FilterPanels turned = FilterPanels::backward(panels);
  const int64_t outputs = panels.columns, inputs = panels.depth, stride = turned.element_stride();
  parallel_for(divide_up(inputs, tile_columns) * panels.panels(), [&](int64_t item) {
    const int64_t output = item % panels.panels() * tile_columns;
    const int64_t input = item / panels.panels() * tile_columns;
    const int64_t rows = std::min<int64_t>(tile_columns, inputs - input);
    const int64_t columns = std::min<int64_t>(tile_columns, outputs - output);
    alignas(64) float square[positions][tile_columns][tile_columns];
    for (int64_t row = 0; row < tile_columns; ++row)
      for (int64_t lane = 0; lane < tile_columns; lane += vector_lanes) {
        const float* from = weight + (output * panels.taps * inputs) + (input + row) * tile_columns + lane;
        const auto tap = [&](int i, int j) {
          return row < rows ? load(from + (8 - 3 * i - j) * inputs * tile_columns) : Vector{};
        };
        transform_filter(tap, [&](int element, Vector v) { store(&square[element][row][lane], v); });
      }
    for (int element = 0; element < positions; ++element)
      lowering::transpose(square[element][0], tile_columns,
                          to + element * stride + (input * outputs) + output * tile_columns, tile_columns,
                          tile_columns, columns);
  });
}

void finish_filters(const WeightPanels& panels, const float* sums, const FilterPanels& sum_panels,
                    float* gradient) {
  const int64_t depth = panels.depth, stride = sum_panels.element_stride();
  parallel_for(panels.panels() * depth, [&](int64_t row) {
    const int64_t panel = row / depth, k = row % depth;
    const float* from = sums + panel * sum_panels.panel_elements() + k * tile_columns;
    float* to = gradient + (panel * panels.taps * depth + k) * tile_columns;
    for (int64_t lane = 0; lane < tile_columns; lane += vector_lanes)
      finish_filter(
          [&](int element) { return load(from + element * stride + lane); },
          [&](int i, int j, Vector v) { store(to + (3 * i + j) * depth * tile_columns + lane, v); });
  });
}

}  // namespace cortado::winograd
