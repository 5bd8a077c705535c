#include <algorithm>

#include "cortado/base/item_shares.h"
#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/lowered_weight.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/lowering/partitions.h"
#include "cortado/kernels/winograd/products.h"
#include "cortado/kernels/winograd/transforms.h"

namespace cortado::winograd {

using namespace lowering;

namespace {

constexpr int64_t block_bytes =
    2 << 20;                       // of transformed tiles: what two L2 caches hold, or a share of the next
constexpr int64_t min_block = 96;  // tiles: each addition to the sums in memory is worth its traffic
// Each thread has sums of its own where all of them are at most this large and many tiles (of each) pay for
// adding them up; few, where they stay in L2 caches.
constexpr int64_t max_own_bytes = 16 << 20, min_own_tiles = 1024;
constexpr int64_t max_near_bytes = 2 << 20, min_near_tiles = 64;
constexpr int64_t max_pieces = 8;  // of a thread's tiles: who has no core for a while leaves some to others
constexpr int64_t channel_group = 48;  // image channels: whole tiles and whole vectors
static_assert(channel_group % tile_rows == 0 && channel_group % vector_lanes == 0);

// sums[r][column] = (first) or += the sum over tiles, made on its own, of
// left[tile * channel_group + r] * right[tile * right_step + column], column in [0, vectors * vector_lanes).
template <bool first, int vectors>
void add_tile(const float* left, const float* right, int64_t right_step, int64_t tiles, float* sums) {
  constexpr int64_t width = vectors * vector_lanes;
  lowering::Tile<tile_rows, vectors> tile;
  tile.set_rows(nullptr);
  multiply_columns<tile_rows>(tile, left, channel_group, tiles, right, right_step);
  if constexpr (first) {
    tile.store_rows(sums, width);
  } else {
    tile.add_to_rows(sums, width);
  }
}

// That for a panel of so many columns.
auto add_tile_of(bool first, int64_t width) {
  if (width > vector_lanes) return first ? add_tile<true, tile_vectors> : add_tile<false, tile_vectors>;
  return first ? add_tile<true, 1> : add_tile<false, 1>;
}

// Each chunk of a group's columns as a group.
WeightPanels in_chunks(WeightPanels weight, int64_t chunks) {
  weight.groups *= chunks;
  weight.columns /= chunks;
  return weight;
}

}  // namespace

template <typename F>
TileSums<F>::TileSums(const ConvolutionProblem& problem)
    : chunks_(FilterPanels<F>::forward(WeightPanels(problem)).chunks()),
      weight_(in_chunks(WeightPanels(problem), chunks_)),
      sum_panels_{round_up(weight_.depth, tile_rows), weight_.columns},
      tiles_(forward_grid(problem, F::windows), weight_.depth, weight_.columns),
      all_columns_(std::max(problem.all_window_channels, chunks_ * weight_.columns)) {
  choose_blocks();
  left_ = TransformedLayout::of_groups(F::positions, weight_.depth, block_, channel_group);
  right_ = TransformedLayout::of_groups(F::positions + 1, weight_.columns, block_,
                                        panel_width(weight_.columns, 0));
}

template <typename F>
void TileSums<F>::choose_blocks() {
  const int64_t tiles = tiles_.grid().tiles(), threads = compute_threads();
  const int64_t element_bytes = F::positions * sizeof(float);
  const int64_t sum_bytes = element_bytes * weight_.depth * weight_.columns * chunks_;
  const int64_t tile_bytes =
      element_bytes * (round_up(weight_.depth, channel_group) + round_up(all_columns_, tile_columns));
  const int64_t least = threads * sum_bytes <= max_near_bytes ? min_near_tiles : min_own_tiles;
  if (threads * sum_bytes <= max_own_bytes && tiles >= threads * least) {
    const int64_t pieces = std::min(max_near_bytes / (threads * sum_bytes), tiles / (threads * min_block));
    parts_ = threads * (threads > 1 ? std::clamp<int64_t>(pieces, 1, max_pieces) : 1);
  }
  takers_ = std::min(parts_, threads);
  block_ = std::min(tiles, std::max(min_block, block_bytes / std::max<int64_t>(1, tile_bytes)));
}

template <typename F>
int64_t TileSums<F>::part_elements() const {
  return sum_panels_.elements() + round_up(weight_.columns, tile_columns);
}

template <typename F>
size_t TileSums<F>::scratch_bytes() const {
  return aligned((parts_ * part_elements() + takers_ * (left_.elements() + right_.elements())) *
                 sizeof(float));
}

template <typename F>
typename TileSums<F>::Part TileSums<F>::part(int64_t index, int64_t taker, float* memory) const {
  const int64_t tiles = tiles_.grid().tiles();
  Part part{{tiles * index / parts_, tiles * (index + 1) / parts_}, memory + index * part_elements()};
  part.bias = part.sums + sum_panels_.elements();
  part.left = memory + parts_ * part_elements() + taker * (left_.elements() + right_.elements());
  part.right = part.left + left_.elements();
  return part;
}

// Item: a group of image channels of an element. Its tiles stay in the L2 cache for all columns.
template <typename F>
void TileSums<F>::add_product(const Part& part, int64_t item, int64_t tiles, bool first) const {
  const int64_t groups = divide_up(weight_.depth, channel_group);
  const int64_t element = item / groups, first_channel = item % groups * channel_group;
  const int64_t channels = std::min(channel_group, weight_.depth - first_channel);
  const float* left = part.left + element * left_.element_stride + item % groups * left_.group_stride;
  for (int64_t panel = 0; panel < weight_.panels(); ++panel) {
    const float* right = part.right + element * right_.element_stride + panel * right_.group_stride;
    const int64_t width = sum_panels_.width(panel);
    const auto add = add_tile_of(first, width);
    float* to = part.sums + element * sum_panels_.element_stride() + sum_panels_.first_of(panel) +
                first_channel * width;
    for (int64_t r = 0; r < channels; r += tile_rows)
      add(left + r, right, right_.tile_stride, tiles, to + r * width);
  }
}

template <typename F>
void TileSums<F>::add_bias(const Part& part, int64_t panel, int64_t tiles, bool first) const {
  const float* right = part.right + F::positions * right_.element_stride + panel * right_.group_stride;
  float* to = part.bias + panel * tile_columns;
  const int64_t width = right_.width;
  float sums[tile_columns] = {};
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t c = 0; c < width; ++c) sums[c] += right[tile * width + c];
  for (int64_t c = 0; c < width; ++c) to[c] = sums[c] + (first ? 0 : to[c]);
}

template <typename F>
void TileSums<F>::sum(const Part& part, int64_t group, const WeightProduct::Operands& operands, bool weights,
                      bool bias) const {
  const int64_t blocks = divide_up(part.tiles.size(), block_);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t begin = part.tiles.begin + part.tiles.size() * block / blocks;
    const int64_t tiles = part.tiles.begin + part.tiles.size() * (block + 1) / blocks - begin;
    const bool first = block == 0;
    parallel_ranges(tiles, [&](int64_t low, int64_t high) {
      const Range range{begin + low, begin + high};
      if (weights)
        tiles_.transform_image(operands.left, group / chunks_ * weight_.depth, range, left_,
                               part.left + low * left_.tile_stride);
      tiles_.transform_gradient(operands, group * weight_.columns, range, right_,
                                part.right + low * right_.tile_stride);
    });
    const int64_t products = weights ? F::positions * divide_up(weight_.depth, channel_group) : 0;
    parallel_ranges(products, [&](int64_t low, int64_t high) {
      for (int64_t item = low; item < high; ++item) add_product(part, item, tiles, first);
    });
    parallel_ranges(bias ? weight_.panels() : 0, [&](int64_t low, int64_t high) {
      for (int64_t panel = low; panel < high; ++panel) add_bias(part, panel, tiles, first);
    });
  }
}

template <typename F>
void TileSums<F>::run(const WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
                      std::byte* scratch) const {
  if (tiles_.grid().tiles() == 0) {
    if (weight_gradient) std::fill_n(weight_gradient, weight_.elements(), 0.0f);
    if (bias_gradient) std::fill_n(bias_gradient, weight_.groups * weight_.columns, 0.0f);
    return;
  }
  for (int64_t g = 0; g < weight_.groups; ++g) {
    run_group(g, operands, weight_gradient ? weight_gradient + g * weight_.group_elements() : nullptr,
              bias_gradient ? bias_gradient + g * weight_.columns : nullptr, scratch);
  }
}

template <typename F>
void TileSums<F>::run_group(int64_t group, const WeightProduct::Operands& operands, float* weight_gradient,
                            float* bias_gradient, std::byte* scratch) const {
  auto* memory = reinterpret_cast<float*>(scratch);
  const Part total = part(0, 0, memory);
  ItemShares shares(parts_, takers_);
  lowering::for_each_partition(static_cast<int>(takers_), [&](int taker) {
    for (int64_t index = shares.take(taker); index >= 0; index = shares.take(taker))
      sum(part(index, taker, memory), group, operands, weight_gradient, bias_gradient);
  });
  if (parts_ > 1) {
    // Bias and sums lie side by side; what was not wanted is added up, too, and not read.
    parallel_ranges(part_elements(), [&](int64_t begin, int64_t end) {
      for (int64_t index = 1; index < parts_; ++index) {
        const float* sums = part(index, 0, memory).sums;
        for (int64_t i = begin; i < end; ++i) total.sums[i] += sums[i];
      }
    });
  }
  if (weight_gradient) sum_panels_.finish(weight_, total.sums, weight_gradient);
  if (bias_gradient) std::copy_n(total.bias, weight_.columns, bias_gradient);
}

template class TileSums<F2x2>;
template class TileSums<F4x4>;
template class TileSums<F2x2Of5x5>;
template class TileSums<F4x4Of5x5>;

}  // namespace cortado::winograd
