#include <algorithm>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/lowered_weight.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/winograd/products.h"
#include "cortado/kernels/winograd/transforms.h"

namespace cortado::winograd {

using namespace lowering;

namespace {

constexpr int64_t block_bytes =
    2 << 20;                       // of transformed tiles: what two L2 caches hold, or a share of the next
constexpr int64_t min_block = 96;  // tiles: each addition to the sums in memory is worth its traffic
constexpr int64_t group = 48;      // image channels: whole tiles and whole vectors
static_assert(group % tile_rows == 0 && group % vector_lanes == 0);
constexpr int sum_of_windows = 5;  // the element of A dy A^T in which all windows are summed

// sums[r][column] = (first) or += sum over tiles of left[tile * group + r] * right[tile][column].
template <bool first>
void add_tile(const float* left, const float* right, int64_t tiles, float* sums) {
  lowering::Tile<tile_rows> tile;
  if constexpr (first) {
    tile.set_rows(nullptr);
  } else {
    tile.load_rows(sums, tile_columns);
  }
  multiply_columns<tile_rows>(tile, left, group, tiles, right);
  tile.store_rows(sums, tile_columns);
}

}  // namespace

TileSums::TileSums(const ConvolutionProblem& problem)
    : weight_(problem),
      sum_panels_{round_up(weight_.depth, tile_rows), weight_.columns},
      grid_(forward_grid(problem)),
      image_(grid_, weight_.depth) {
  const int64_t tiles = grid_.tiles();
  const int64_t tile_bytes =
      positions * sizeof(float) * (round_up(weight_.depth, group) + round_up(weight_.columns, tile_columns));
  if (tiles > 0) {
    blocks_ = divide_up(tiles, std::max(min_block, block_bytes / std::max<int64_t>(1, tile_bytes)));
    block_ = divide_up(tiles, blocks_);
  }
  left_ = TransformedLayout::of_groups(weight_.depth, block_, group);
  right_ = TransformedLayout::of_groups(weight_.columns, block_, tile_columns);
}

size_t TileSums::scratch_bytes() const {
  return aligned((sum_panels_.elements() + left_.elements() + right_.elements()) * sizeof(float));
}

// Items are groups of image channels of an element: a group's tiles stay in the L2 cache for all columns.
void TileSums::add_products(const float* left, const float* right, int64_t tiles, bool first,
                            float* sums) const {
  const int64_t groups = divide_up(weight_.depth, group);
  const auto add = first ? add_tile<true> : add_tile<false>;
  parallel_for(positions * groups, [&](int64_t item) {
    const int64_t element = item / groups, first_channel = item % groups * group;
    const int64_t channels = std::min(group, weight_.depth - first_channel);
    const float* own_left = left + element * left_.element_stride + item % groups * left_.group_stride;
    for (int64_t panel = 0; panel < weight_.panels(); ++panel) {
      const float* own_right = right + element * right_.element_stride + panel * right_.group_stride;
      float* to = sums + element * sum_panels_.element_stride() + panel * sum_panels_.panel_elements() +
                  first_channel * tile_columns;
      for (int64_t r = 0; r < channels; r += tile_rows)
        add(own_left + r, own_right, tiles, to + r * tile_columns);
    }
  });
}

void TileSums::add_bias(const float* right, int64_t tiles, bool first, float* gradient) const {
  parallel_for(weight_.panels(), [&](int64_t panel) {
    const float* own = right + sum_of_windows * right_.element_stride + panel * right_.group_stride;
    const int64_t column = panel * tile_columns;
    const int64_t count = std::min<int64_t>(tile_columns, weight_.columns - column);
    float sums[tile_columns] = {};
    for (int64_t tile = 0; tile < tiles; ++tile)
      for (int64_t c = 0; c < tile_columns; ++c) sums[c] += own[tile * tile_columns + c];
    for (int64_t c = 0; c < count; ++c) gradient[column + c] = sums[c] + (first ? 0 : gradient[column + c]);
  });
}

void TileSums::run(const WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
                   std::byte* scratch) const {
  if (blocks_ == 0) {
    if (weight_gradient) std::fill_n(weight_gradient, weight_.elements(), 0.0f);
    if (bias_gradient) std::fill_n(bias_gradient, weight_.columns, 0.0f);
    return;
  }
  auto* sums = reinterpret_cast<float*>(scratch);
  float* left = sums + sum_panels_.elements();
  float* right = left + left_.elements();
  for (int64_t block = 0; block < blocks_; ++block) {
    const int64_t begin = grid_.tiles() * block / blocks_, end = grid_.tiles() * (block + 1) / blocks_;
    parallel_ranges(end - begin, [&](int64_t low, int64_t high) {
      const Range range{begin + low, begin + high};
      if (weight_gradient) image_.transform(operands.left, range, left_, left + low * left_.tile_stride);
      transform_gradient_tiles(grid_, weight_.columns, operands, range, right_,
                               right + low * right_.tile_stride);
    });
    if (weight_gradient) add_products(left, right, end - begin, block == 0, sums);
    if (bias_gradient) add_bias(right, end - begin, block == 0, bias_gradient);
  }
  if (weight_gradient) finish_filters(weight_, sums, sum_panels_, weight_gradient);
}

}  // namespace cortado::winograd
