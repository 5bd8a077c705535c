#include <algorithm>
#include <bit>

#include "cortado/base/item_shares.h"
#include "cortado/kernels/lowering/lowered_weight.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/lowering/partitions.h"
#include "cortado/kernels/winograd/products.h"
#include "cortado/kernels/winograd/transforms.h"

namespace cortado::winograd {

using namespace lowering;

namespace {

constexpr int64_t max_depth_block = 640;  // times tile_columns floats: a panel's part in cache
// Channels that are summed on their own. Longer sums round more, and the last transform magnifies that.
constexpr int64_t max_sum = 128;
constexpr int64_t max_block = 96;  // tiles
// Filters that each thread transforms for itself, so as not to read them from another's cache.
constexpr int64_t max_own_filters = 256 << 10;  // bytes

// out[r] = (first) or += sum over k of left[r][k] * panel[k] for a tile of rows, in sums of few k.
template <bool first, int vectors>
void multiply_tile(const float* left, int64_t left_stride, int64_t depth, const float* panel, float* out,
                   int64_t out_stride) {
  lowering::Tile<tile_rows, vectors> tile;
  const float* rows[tile_rows];
  for (int r = 0; r < tile_rows; ++r) rows[r] = left + r * left_stride;
  const int64_t step = divide_up(depth, divide_up(depth, max_sum));
  for (int64_t k = 0; k < depth; k += step) {
    tile.set_rows(nullptr);
    multiply_rows<tile_rows>(tile, rows, k, std::min(step, depth - k), panel + k * vectors * vector_lanes);
    if (first && k == 0) {
      tile.store_rows(out, out_stride);
    } else {
      tile.add_to_rows(out, out_stride);
    }
  }
}

// That for a panel of so many columns.
auto multiply_tile_of(bool first, int64_t width) {
  if (width > vector_lanes)
    return first ? multiply_tile<true, tile_vectors> : multiply_tile<false, tile_vectors>;
  return first ? multiply_tile<true, 1> : multiply_tile<false, 1>;
}

}  // namespace

template <typename F>
FilterPanels<F> TileProduct<F>::filters_of(const WeightPanels& weight, Direction direction) {
  return direction == Direction::forward ? FilterPanels<F>::forward(weight)
                                         : FilterPanels<F>::backward(weight);
}

template <typename F>
TileProduct<F>::TileProduct(const ConvolutionProblem& problem, Direction direction)
    : direction_(direction),
      parts_(direction == Direction::forward ? 1 : problem.window_parts),
      weight_(problem),
      chunks_(filters_of(weight_, direction).chunks()),
      filters_(filters_of(weight_, direction).chunk()),
      tiles_(direction == Direction::forward ? forward_grid(problem, F::windows)
                                             : backward_grid(problem, F::windows),
             filters_.depth, filters_.columns) {
  choose_blocks();
  if (filters_.elements() * static_cast<int64_t>(sizeof(float)) <= max_own_filters)
    copies_ = compute_threads();
  left_ = TransformedLayout::of_rows(F::positions, filters_.depth, block_);
  sums_ = TransformedLayout::of_rows(F::positions, padded_columns(filters_.columns), block_);
}

template <typename F>
void TileProduct<F>::choose_blocks() {
  const int64_t tiles = tiles_.grid().tiles(), threads = compute_threads();
  if (tiles == 0) return;
  blocks_ = divide_up(tiles, max_block);
  if (blocks_ >= threads) {
    blocks_ = round_up(blocks_, threads);
  } else {
    column_parts_ = std::min(divide_up(threads, blocks_), divide_up(filters_.columns, tile_columns));
  }
  block_ = round_up(divide_up(tiles, blocks_), tile_rows);
  blocks_ = divide_up(tiles, block_);
}

template <typename F>
int64_t TileProduct<F>::kept_elements() const {
  return block_ * F::windows * F::windows * padded_columns(filters_.columns);
}

template <typename F>
int TileProduct<F>::kept_levels() const {
  return std::bit_width(static_cast<unsigned>(parts_)) - 1;
}

template <typename F>
int64_t TileProduct<F>::thread_elements() const {
  return left_.elements() + sums_.elements() + kept_levels() * kept_elements();
}

template <typename F>
size_t TileProduct<F>::scratch_bytes() const {
  const int64_t blocks = compute_threads() * thread_elements();
  return aligned(copies_ * filters_.elements() * sizeof(float)) + aligned(blocks * sizeof(float));
}

// Rows after the last tile of a block are summed, too, but nobody reads them.
template <typename F>
void TileProduct<F>::multiply(const float* left, const float* filters, int64_t tiles, Range depth,
                              Range panels, float* sums) const {
  const int64_t parts = std::max<int64_t>(1, divide_up(depth.size(), max_depth_block));
  for (int element = 0; element < F::positions; ++element)
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = depth.begin + depth.size() * part / parts,
                    end = depth.begin + depth.size() * (part + 1) / parts;
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t width = filters_.width(panel);
        const float* right =
            filters + element * filters_.element_stride() + filters_.first_of(panel) + begin * width;
        float* to = sums + element * sums_.element_stride + (panel - panels.begin) * tile_columns;
        const auto multiply = multiply_tile_of(part == 0, width);
        for (int64_t tile = 0; tile < tiles; tile += tile_rows)
          multiply(left + element * left_.element_stride + tile * left_.tile_stride + begin,
                   left_.tile_stride, end - begin, right, to + tile * sums_.tile_stride, sums_.tile_stride);
      }
    }
}

template <typename F>
void TileProduct<F>::finish_block(const float* left, const float* filters, Range range, Range panels,
                                  int64_t chunk, const Epilogue& epilogue, float* sums, float* to) const {
  const int64_t first = chunk * filters_.columns;
  const Range some{first + panels.begin * tile_columns,
                   first + std::min(filters_.columns, panels.end * tile_columns)};
  for (int part = 0; part < parts_; ++part) {
    multiply(left, filters, range.size(),
             {filters_.depth * part / parts_, filters_.depth * (part + 1) / parts_}, panels, sums);
    KeptSums kept;
    if (parts_ > 1)
      kept = {sums + sums_.elements(), kept_elements(), std::countr_one(static_cast<unsigned>(part)),
              part == parts_ - 1};
    tiles_.finish_windows(some, sums, sums_, range, epilogue, to, kept);
  }
}

template <typename F>
void TileProduct<F>::run(const float* from, const float* weight, float* to, const Epilogue& epilogue,
                         std::byte* scratch) const {
  for (int64_t chunk = 0; chunk < weight_.groups * chunks_; ++chunk)
    run_chunk(chunk, from, weight + chunk / chunks_ * weight_.group_elements(), to, epilogue, scratch);
}

template <typename F>
void TileProduct<F>::run_chunk(int64_t chunk, const float* from, const float* weight, float* to,
                               const Epilogue& epilogue, std::byte* scratch) const {
  auto* filters = reinterpret_cast<float*>(scratch);
  auto* blocks = reinterpret_cast<float*>(scratch + aligned(copies_ * filters_.elements() * sizeof(float)));
  if (blocks_ == 0) return;
  lowering::for_each_partition(static_cast<int>(copies_), [&](int64_t copy) {
    const auto transform =
        direction_ == Direction::forward ? &FilterPanels<F>::transform : &FilterPanels<F>::transform_turned;
    (filters_.*transform)(weight_, weight, chunk % chunks_ * filters_.columns,
                          filters + copy * filters_.elements());
  });
  const int64_t panels = divide_up(filters_.columns, tile_columns);
  share_items(blocks_ * column_parts_, [&](int64_t thread, int64_t item) {
    float* left = blocks + thread * thread_elements();
    float* sums = left + left_.elements();
    const float* own = filters + (copies_ > 1 ? thread * filters_.elements() : 0);
    const int64_t begin = item / column_parts_ * block_, part = item % column_parts_;
    const Range range{begin, std::min(tiles_.grid().tiles(), begin + block_)};
    tiles_.transform_image(from, chunk / chunks_ * filters_.depth, range, left_, left);
    const Range some{panels * part / column_parts_, panels * (part + 1) / column_parts_};
    finish_block(left, own, range, some, chunk, epilogue, sums, to);
  });
}

template class TileProduct<F2x2>;
template class TileProduct<F4x4>;
template class TileProduct<F2x2Of5x5>;
template class TileProduct<F4x4Of5x5>;

}  // namespace cortado::winograd
