#pragma once

#include <cstdint>
#include <vector>

#include "cortado/base/shape.h"
#include "cortado/kernels/lowering/problem.h"
#include "cortado/kernels/lowering/row_product.h"
#include "cortado/kernels/lowering/weight_product.h"

namespace cortado::winograd {

// The windows of a convolution as tiles of 2 x 2 (the last of a row or column may hang over), numbered plane
// by plane, row by row. Window (i, j) reads the image from (i - pad[0], j - pad[1]) on.
struct TileGrid {
  int64_t planes = 0;
  int64_t image[2] = {}, windows[2] = {}, pad[2] = {};  // along h and w

  int64_t rows() const { return lowering::divide_up(windows[0], 2); }
  int64_t columns() const { return lowering::divide_up(windows[1], 2); }
  int64_t tiles() const { return planes * rows() * columns(); }
};
TileGrid forward_grid(const lowering::ConvolutionProblem& problem);
// Backward data: windows in the place of the image, with the filter turned by 180 degrees.
TileGrid backward_grid(const lowering::ConvolutionProblem& problem);

// Where the 16 elements of transformed tiles lie: `channel` of tile `tile` of a block at
// element * element_stride + channel / width * group_stride + tile * tile_stride + channel % width.
struct TransformedLayout {
  int64_t width = 0, tile_stride = 0, group_stride = 0, element_stride = 0;

  // Each tile's channels together, as many tiles as given.
  static TransformedLayout of_rows(int64_t channels, int64_t tiles);
  // Groups of `width` channels, as the sum over tiles reads them.
  static TransformedLayout of_groups(int64_t channels, int64_t tiles, int64_t width);
  int64_t elements() const;  // floats in all
};

// B^T d B of the tiles of a range, the first to `to`.
class ImageTiles {
 public:
  ImageTiles(const TileGrid& grid, int64_t channels);
  void transform(const float* image, Range range, const TransformedLayout& layout, float* to) const;

 private:
  TileGrid grid_;
  int64_t channels_;
  std::vector<float> zeros_;  // a position outside the image
};

// A dy A^T of the tiles of a range, the first to `to`, channels filled up with zeros to whole groups. A fused
// ReLU masks the gradient on the way.
void transform_gradient_tiles(const TileGrid& grid, int64_t channels,
                              const lowering::WeightProduct::Operands& operands, Range range,
                              const TransformedLayout& layout, float* to);

// A^T m A of the tiles of a range, the first from `sums`, with bias and ReLU, to some of the windows'
// `channels`.
void finish_window_tiles(const TileGrid& grid, int64_t channels, Range some, const float* sums,
                         const TransformedLayout& layout, Range range, const lowering::Epilogue& epilogue,
                         float* windows);

}  // namespace cortado::winograd
