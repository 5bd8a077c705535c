#include "cortado/kernels/winograd/tiles.h"

#include <algorithm>
#include <cstring>

#include "cortado/kernels/winograd/transforms.h"

namespace cortado::winograd {

using lowering::load;
using lowering::round_up;
using lowering::store;
using lowering::vector_lanes;

namespace {

constexpr int64_t line = 16;  // floats of a cache line

// A vector's first `count` lanes.
Vector load_part(const float* from, int64_t count) {
  Vector vector{};
  std::memcpy(&vector, from, count * sizeof(float));
  return vector;
}
void store_part(float* to, Vector vector, int64_t count) { std::memcpy(to, &vector, count * sizeof(float)); }

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
    for (; c + vector_lanes <= end; c += vector_lanes)
      work(c, std::integral_constant<int64_t, vector_lanes>{}, offset + c - first);
    if (c < end) work(c, end - c, offset + c - first);
  }
}

Vector get(const float* from, std::integral_constant<int64_t, vector_lanes>) { return load(from); }
Vector get(const float* from, int64_t lanes) { return load_part(from, lanes); }
void put(float* to, Vector vector, std::integral_constant<int64_t, vector_lanes>) { store(to, vector); }
void put(float* to, Vector vector, int64_t lanes) { store_part(to, vector, lanes); }

// pixel(row, column): where the channels of an image position lie.
template <typename Pixel>
[[gnu::always_inline]] inline void transform_tile(int64_t channels, const TransformedLayout& layout,
                                                  Pixel&& pixel, float* to) {
  for_each_vector(channels, layout, [&](int64_t c, auto lanes, int64_t offset) {
    float* first = to + offset;
    transform_image([&](int i, int j) { return get(pixel(i, j) + c, lanes); },
                    [&](int element, Vector v) { store(first + element * layout.element_stride, v); });
  });
}

// A tile of 2 x 2 windows of a gradient: where it begins, and whether its second row and column exist.
struct GradientTile {
  int64_t corner, row_stride, channels;
  bool has[2];
};

template <bool rectify, bool whole>
void transform_tile(const GradientTile& tile, const lowering::WeightProduct::Operands& operands,
                    const TransformedLayout& layout, float* to) {
  for_each_vector(tile.channels, layout, [&](int64_t c, auto lanes, int64_t offset) {
    const auto read = [&](int i, int j) {
      if (!whole && ((i == 1 && !tile.has[0]) || (j == 1 && !tile.has[1]))) return Vector{};
      const int64_t at = tile.corner + i * tile.row_stride + j * tile.channels + c;
      Vector gradient = get(operands.out_gradient + at, lanes);
      if (rectify) gradient = get(operands.rectified + at, lanes) > 0 ? gradient : operands.slope * gradient;
      if (rectify && operands.masked) put(operands.masked + at, gradient, lanes);
      return gradient;
    };
    float* first = to + offset;
    transform_gradient(read,
                       [&](int element, Vector v) { store(first + element * layout.element_stride, v); });
  });
}

// Zeros for the channels that the last group has too many.
void fill_group(int64_t channels, const TransformedLayout& layout, float* to) {
  const int64_t last = channels / layout.width * layout.group_stride;
  for (int64_t c = round_up(channels, vector_lanes); c < round_up(channels, layout.width); c += vector_lanes)
    for (int element = 0; element < positions; ++element)
      store(to + element * layout.element_stride + last + c % layout.width, Vector{});
}

}  // namespace

TileGrid forward_grid(const lowering::ConvolutionProblem& problem) {
  const auto& [d, h, w] = problem.axis;
  return {problem.batch * d.windows, {h.image, w.image}, {h.windows, w.windows}, {h.pad, w.pad}};
}

TileGrid backward_grid(const lowering::ConvolutionProblem& problem) {
  const auto& [d, h, w] = problem.axis;
  return {problem.batch * d.windows, {h.windows, w.windows}, {h.image, w.image}, {2 - h.pad, 2 - w.pad}};
}

TransformedLayout TransformedLayout::of_rows(int64_t channels, int64_t tiles) {
  return of_groups(channels, tiles, round_up(std::max<int64_t>(1, channels), line));
}

// Element strides that are no multiple of a page spread the 16 streams over the sets of the L1 cache.
TransformedLayout TransformedLayout::of_groups(int64_t channels, int64_t tiles, int64_t width) {
  TransformedLayout layout{width, width, tiles * width, 0};
  layout.element_stride = round_up(lowering::divide_up(channels, width) * layout.group_stride, line) + line;
  return layout;
}

int64_t TransformedLayout::elements() const { return positions * element_stride; }

ImageTiles::ImageTiles(const TileGrid& grid, int64_t channels)
    : grid_(grid), channels_(channels), zeros_(channels) {}

void ImageTiles::transform(const float* image, Range range, const TransformedLayout& layout,
                           float* to) const {
  const int64_t height = grid_.image[0], width = grid_.image[1], row_stride = width * channels_;
  for_each_place(grid_, range, [&](const TilePlace& place) {
    const int64_t top = 2 * place.row - grid_.pad[0], left = 2 * place.column - grid_.pad[1];
    const float* corner = image + (place.plane * height + top) * row_stride + left * channels_;
    if (top >= 0 && left >= 0 && top + 4 <= height && left + 4 <= width) {
      transform_tile(
          channels_, layout, [&](int i, int j) { return corner + i * row_stride + j * channels_; }, to);
    } else {
      const float* pixels[4][4];
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < 4; ++j) {
          const bool inside = top + i >= 0 && top + i < height && left + j >= 0 && left + j < width;
          pixels[i][j] = inside ? corner + i * row_stride + j * channels_ : zeros_.data();
        }
      transform_tile(
          channels_, layout, [&](int i, int j) { return pixels[i][j]; }, to);
    }
    to += layout.tile_stride;
  });
}

void transform_gradient_tiles(const TileGrid& grid, int64_t channels,
                              const lowering::WeightProduct::Operands& operands, Range range,
                              const TransformedLayout& layout, float* to) {
  const int64_t row_stride = grid.windows[1] * channels;
  for_each_place(grid, range, [&](const TilePlace& place) {
    const int64_t top = 2 * place.row, left = 2 * place.column;
    const GradientTile tile{(place.plane * grid.windows[0] + top) * row_stride + left * channels,
                            row_stride,
                            channels,
                            {top + 1 < grid.windows[0], left + 1 < grid.windows[1]}};
    const bool whole = tile.has[0] && tile.has[1];
    if (operands.rectified) {
      whole ? transform_tile<true, true>(tile, operands, layout, to)
            : transform_tile<true, false>(tile, operands, layout, to);
    } else {
      whole ? transform_tile<false, true>(tile, operands, layout, to)
            : transform_tile<false, false>(tile, operands, layout, to);
    }
    fill_group(channels, layout, to);
    to += layout.tile_stride;
  });
}

void finish_window_tiles(const TileGrid& grid, int64_t channels, Range some, const float* sums,
                         const TransformedLayout& layout, Range range, const lowering::Epilogue& epilogue,
                         float* windows) {
  const int64_t row_stride = grid.windows[1] * channels;
  for_each_place(grid, range, [&](const TilePlace& place) {
    const int64_t top = 2 * place.row, left = 2 * place.column;
    float* corner =
        windows + (place.plane * grid.windows[0] + top) * row_stride + left * channels + some.begin;
    const bool has[2] = {top + 1 < grid.windows[0], left + 1 < grid.windows[1]};
    for_each_vector(some.size(), layout, [&](int64_t c, auto lanes, int64_t offset) {
      const Vector bias = epilogue.bias ? get(epilogue.bias + some.begin + c, lanes) : Vector{};
      const float* first = sums + some.begin + offset;
      const auto write = [&](int i, int j, Vector value) {
        if ((i == 1 && !has[0]) || (j == 1 && !has[1])) return;
        value += bias;
        if (epilogue.rectify)
          value = (value < 0 ? Vector{} : value) + epilogue.slope * (value < 0 ? value : Vector{});
        put(corner + i * row_stride + j * channels + c, value, lanes);
      };
      finish_windows([&](int element) { return load(first + element * layout.element_stride); }, write);
    });
    sums += layout.tile_stride;
  });
}

}  // namespace cortado::winograd
