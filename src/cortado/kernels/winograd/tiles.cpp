#include "cortado/kernels/winograd/tiles.h"

#include <algorithm>
#include <cstring>

#include "cortado/base/error.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/tensor_type.h"
#include "cortado/kernels/winograd/elements.h"
#include "cortado/kernels/winograd/transforms.h"

namespace cortado::winograd {

using lowering::load;
using lowering::round_up;
using lowering::store;

namespace {

constexpr int64_t line = 16;  // floats of a cache line

struct TilePlace {
  int64_t plane, row, column;
};

// Calls work(place) for each tile of a range.
template <typename Work>
void for_each_place(const TileGrid& grid, Range range, Work&& work) {
  const int64_t rows = grid.rows(), columns = grid.columns();
  TilePlace place{range.begin / columns / rows, range.begin / columns % rows, range.begin % columns};
  for (int64_t tile = range.begin; tile < range.end; ++tile) {
    work(place);
    if (++place.column < columns) continue;
    place.column = 0;
    if (++place.row < rows) continue;
    place.row = 0;
    ++place.plane;
  }
}

// Calls work(first channel, lanes in use, offset in a transformed tile) for each vector of channels.
template <typename Work>
[[gnu::always_inline]] inline void for_each_vector(int64_t channels, const TransformedLayout& layout,
                                                   Work&& work) {
  int64_t offset = 0;
  for (int64_t first = 0; first < channels; first += layout.width, offset += layout.group_stride) {
    const int64_t end = std::min(channels, first + layout.width);
    int64_t c = first;
    for (; c + vector_lanes <= end; c += vector_lanes) work(c, AllLanes{}, offset + c - first);
    if (c < end) work(c, end - c, offset + c - first);
  }
}

// Calls work(std::bool_constant, std::bool_constant) for the two.
template <typename Work>
void choose(bool first, bool second, Work&& work) {
  using No = std::false_type;
  using Yes = std::true_type;
  if (first) {
    second ? work(Yes(), Yes()) : work(Yes(), No());
  } else {
    second ? work(No(), Yes()) : work(No(), No());
  }
}

// pixel(row, column): where the channels of an image position lie.
template <typename F, typename Pixel>
[[gnu::always_inline]] inline void transform_image_tile(int64_t channels, const TransformedLayout& layout,
                                                        Pixel&& pixel, float* to) {
  const int64_t stride = layout.element_stride;
  for_each_vector(channels, layout, [&](int64_t c, auto lanes, int64_t offset) {
    float* first = to + offset;
    transform<F::span, F::span, F::image>(
        [&](int i, int j) { return get(pixel(i, j) + c, lanes); },
        [&](int i, int j, Vector v) { store(first + (F::span * i + j) * stride, v); });
  });
}

// A tile of windows in memory: where it begins, and how many of its rows and columns exist.
struct WindowTile {
  WindowTile(const TileGrid& grid, const TilePlace& place, int64_t channels)
      : stride(grid.window_stride),
        row_stride(grid.windows[1] * stride),
        channels(channels),
        side(grid.side) {
    const int64_t top = side * place.row, left = side * place.column;
    corner = (place.plane * grid.windows[0] + top) * row_stride + left * stride;
    rows = std::min(side, grid.windows[0] - top);
    columns = std::min(side, grid.windows[1] - left);
  }
  int64_t corner, stride, row_stride, channels, side, rows, columns;

  bool is_whole() const { return rows == side && columns == side; }
  bool has(int i, int j) const { return i < rows && j < columns; }
  int64_t at(int i, int j) const { return corner + i * row_stride + j * stride; }
};

// The operands at a group's first channel, in elements of the windows' type.
template <typename E>
struct GradientOperands {
  GradientOperands(const lowering::WeightProduct::Operands& operands, int64_t first)
      : gradient(elements<E>(operands.out_gradient) + first),
        rectified(operands.rectified ? elements<E>(operands.rectified) + first : nullptr),
        masked(operands.masked ? elements<E>(operands.masked) + first : nullptr),
        slope(operands.slope) {}
  const E *gradient, *rectified;
  E* masked;
  float slope;
};

template <typename F, typename E, bool rectify, bool whole>
void transform_gradient_tile(const WindowTile tile, const GradientOperands<E> operands,
                             const TransformedLayout& layout, float* to) {
  const int64_t stride = layout.element_stride;
  for_each_vector(tile.channels, layout, [&](int64_t c, auto lanes, int64_t offset) {
    Vector sum{};
    const auto read = [&](int i, int j) {
      if (!whole && !tile.has(i, j)) return Vector{};
      const int64_t at = tile.at(i, j) + c;
      Vector gradient = get(operands.gradient + at, lanes);
      if (rectify) gradient = get(operands.rectified + at, lanes) > 0 ? gradient : operands.slope * gradient;
      if (rectify && operands.masked) put(operands.masked + at, gradient, lanes);
      sum += gradient;
      return gradient;
    };
    float* first = to + offset;
    transform<F::windows, F::span, F::gradient>(
        read, [&](int i, int j, Vector v) { store(first + (F::span * i + j) * stride, v); });
    store(first + F::positions * stride, sum);
  });
}

template <typename F, typename E, bool rectify, bool whole>
void finish_tile(const WindowTile tile, Range some, const float* sums, const TransformedLayout& layout,
                 const lowering::Epilogue epilogue, E* windows, const KeptSums kept) {
  const int64_t stride = layout.element_stride, width = round_up(some.size(), vector_lanes);
  for_each_vector(some.size(), layout, [&](int64_t c, auto lanes, int64_t offset) {
    const Vector bias = epilogue.bias ? get(epilogue.bias + some.begin + c, lanes) : Vector{};
    const float* first = sums + offset;
    E* corner = windows + some.begin + c;
    const auto write = [&](int i, int j, Vector value) {
      if (!whole && !tile.has(i, j)) return;
      if (kept.memory) {
        float* at = kept.memory + (i * F::windows + j) * width + c;
        for (int level = 0; level < kept.levels; ++level, at += kept.level_stride) value = load(at) + value;
        if (!kept.last) return store(at, value);
      }
      value += bias;
      if (rectify) value = (value < 0 ? Vector{} : value) + epilogue.slope * (value < 0 ? value : Vector{});
      put(corner + tile.at(i, j), value, lanes);
    };
    transform<F::span, F::windows, F::finish_windows>(
        [&](int i, int j) { return load(first + (F::span * i + j) * stride); }, write);
  });
}

// Zeros for the channels that the last group has too many.
void fill_group(int64_t channels, const TransformedLayout& layout, float* to) {
  const int64_t last = channels / layout.width * layout.group_stride;
  for (int64_t c = round_up(channels, vector_lanes); c < round_up(channels, layout.width); c += vector_lanes)
    for (int64_t element = 0; element < layout.positions; ++element)
      store(to + element * layout.element_stride + last + c % layout.width, Vector{});
}

}  // namespace

TileGrid forward_grid(const lowering::ConvolutionProblem& problem, int64_t side) {
  const auto& [d, h, w] = problem.axis;
  return {side,
          problem.batch * d.windows,
          {h.image, w.image},
          {h.windows, w.windows},
          {h.pad, w.pad},
          problem.groups * problem.image_channels,
          problem.groups * problem.window_channels,
          problem.image_type,
          problem.window_type};
}

TileGrid backward_grid(const lowering::ConvolutionProblem& problem, int64_t side) {
  const auto& [d, h, w] = problem.axis;
  return {side,
          problem.batch * d.windows,
          {h.windows, w.windows},
          {h.image, w.image},
          {h.kernel - 1 - h.pad, w.kernel - 1 - w.pad},
          problem.groups * problem.window_channels,
          problem.groups * problem.image_channels,
          problem.window_type,
          problem.image_type};
}

TransformedLayout TransformedLayout::of_rows(int64_t positions, int64_t channels, int64_t tiles) {
  return of_groups(positions, channels, tiles, round_up(std::max<int64_t>(1, channels), line));
}

// Element strides that are no multiple of a page spread the elements' streams over the sets of the L1 cache.
TransformedLayout TransformedLayout::of_groups(int64_t positions, int64_t channels, int64_t tiles,
                                               int64_t width) {
  TransformedLayout layout{positions, width, width, tiles * width, 0};
  layout.element_stride = round_up(lowering::divide_up(channels, width) * layout.group_stride, line) + line;
  return layout;
}

template <typename F>
Tiles<F>::Tiles(const TileGrid& grid, int64_t image_channels, int64_t window_channels)
    : grid_(grid),
      image_channels_(image_channels),
      window_channels_(window_channels),
      zeros_(image_channels) {
  ensure(grid.side == F::windows, "a grid of the filtering's tiles");
}

template <typename F>
template <typename E>
void Tiles<F>::transform_image_of(const E* image, Range range, const TransformedLayout& layout,
                                  float* to) const {
  constexpr int span = F::span;
  const int64_t height = grid_.image[0], width = grid_.image[1], channels = image_channels_;
  const int64_t stride = grid_.image_stride, row_stride = width * stride;
  for_each_place(grid_, range, [&](const TilePlace& place) {
    const int64_t top = F::windows * place.row - grid_.pad[0],
                  left = F::windows * place.column - grid_.pad[1];
    const E* corner = image + (place.plane * height + top) * row_stride + left * stride;
    if (top >= 0 && left >= 0 && top + span <= height && left + span <= width) {
      transform_image_tile<F>(
          channels, layout, [&](int i, int j) { return corner + i * row_stride + j * stride; }, to);
    } else {
      const E* pixels[span][span];
      for (int64_t i = 0; i < span; ++i)
        for (int64_t j = 0; j < span; ++j) {
          const bool inside = top + i >= 0 && top + i < height && left + j >= 0 && left + j < width;
          pixels[i][j] = inside ? corner + i * row_stride + j * stride : elements<E>(zeros_.data());
        }
      transform_image_tile<F>(
          channels, layout, [&](int i, int j) { return pixels[i][j]; }, to);
    }
    to += layout.tile_stride;
  });
}

template <typename F>
void Tiles<F>::transform_image(const float* image, int64_t first, Range range,
                               const TransformedLayout& layout, float* to) const {
  with_tensor_type(grid_.image_type,
                   [&]<typename E>() { transform_image_of(elements<E>(image) + first, range, layout, to); });
}

template <typename F>
void Tiles<F>::transform_gradient(const lowering::WeightProduct::Operands& operands, int64_t first,
                                  Range range, const TransformedLayout& layout, float* to) const {
  with_tensor_type(grid_.window_type, [&]<typename E>() {
    for_each_place(grid_, range, [&](const TilePlace& place) {
      const WindowTile tile(grid_, place, window_channels_);
      choose(operands.rectified, tile.is_whole(), [&](auto rectify, auto whole) {
        transform_gradient_tile<F, E, rectify(), whole()>(tile, {operands, first}, layout, to);
      });
      fill_group(window_channels_, layout, to);
      to += layout.tile_stride;
    });
  });
}

template <typename F>
void Tiles<F>::finish_windows(Range some, const float* sums, const TransformedLayout& layout, Range range,
                              const lowering::Epilogue& epilogue, float* windows,
                              const KeptSums& kept) const {
  with_tensor_type(grid_.window_type, [&]<typename E>() {
    KeptSums of_tile = kept;
    for_each_place(grid_, range, [&](const TilePlace& place) {
      const WindowTile tile(grid_, place, window_channels_);
      choose(epilogue.rectify, tile.is_whole(), [&](auto rectify, auto whole) {
        finish_tile<F, E, rectify(), whole()>(tile, some, sums, layout, epilogue, elements<E>(windows),
                                              of_tile);
      });
      sums += layout.tile_stride;
      if (kept.memory) of_tile.memory += F::windows * F::windows * round_up(some.size(), vector_lanes);
    });
  });
}

template class Tiles<F2x2>;
template class Tiles<F4x4>;
template class Tiles<F2x2Of5x5>;
template class Tiles<F4x4Of5x5>;

}  // namespace cortado::winograd
