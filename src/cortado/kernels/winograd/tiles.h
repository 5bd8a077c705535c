#pragma once

#include <cstdint>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/base/shape.h"
#include "cortado/kernels/lowering/problem.h"
#include "cortado/kernels/lowering/row_product.h"
#include "cortado/kernels/lowering/weight_product.h"

namespace cortado::winograd {

// The windows of a convolution as square tiles (the last of a row or column may hang over), numbered plane by
// plane, row by row. Window (i, j) reads the image from (i - pad[0], j - pad[1]) on.
struct TileGrid {
  int64_t side = 0;  // windows of a tile along h and along w
  int64_t planes = 0;
  int64_t image[2] = {}, windows[2] = {}, pad[2] = {};  // along h and w
  int64_t image_stride = 0, window_stride = 0;          // of positions: the channels of all groups
  ElementType image_type = ElementType::f32, window_type = ElementType::f32;

  int64_t rows() const { return lowering::divide_up(windows[0], side); }
  int64_t columns() const { return lowering::divide_up(windows[1], side); }
  int64_t tiles() const { return planes * rows() * columns(); }
};
TileGrid forward_grid(const lowering::ConvolutionProblem& problem, int64_t side);
// Backward data: windows in the place of the image, with the filter turned by 180 degrees.
TileGrid backward_grid(const lowering::ConvolutionProblem& problem, int64_t side);

// Where the elements of transformed tiles lie, `positions` of a tile: `channel` of tile `tile` of a block at
// element * element_stride + channel / width * group_stride + tile * tile_stride + channel % width.
struct TransformedLayout {
  int64_t positions = 0, width = 0, tile_stride = 0, group_stride = 0, element_stride = 0;

  // Each tile's channels together, as many tiles as given.
  static TransformedLayout of_rows(int64_t positions, int64_t channels, int64_t tiles);
  // Groups of `width` channels, as the sum over tiles reads them.
  static TransformedLayout of_groups(int64_t positions, int64_t channels, int64_t tiles, int64_t width);
  int64_t elements() const { return positions * element_stride; }  // floats in all
};

// Sums over parts of the channels, kept in memory until they are added up in the tree of base/sum_tree.h:
// [level][tile][window][channel], `level_stride` floats a level.
struct KeptSums {
  float* memory = nullptr;  // null: there are no parts
  int64_t level_stride = 0;
  int levels = 0;     // whose sums are added to this part's
  bool last = false;  // the sum goes to the windows; else it is kept at level `levels`
};

// The transforms of F (transforms.h) over ranges of a grid's tiles, of one group's channels, which begin at
// `first`; transformed tiles begin with the range's first. Tensors lie at pointers of float whatever the type
// of their elements (kernel.h); what is transformed is float.
template <typename F>
class Tiles {
 public:
  Tiles(const TileGrid& grid, int64_t image_channels, int64_t window_channels);
  const TileGrid& grid() const { return grid_; }

  // B^T d B.
  void transform_image(const float* image, int64_t first, Range range, const TransformedLayout& layout,
                       float* to) const;
  // A dy A^T and after its F::positions elements the sum of dy, channels filled up with zeros to whole
  // groups. A fused ReLU masks the gradient on the way.
  void transform_gradient(const lowering::WeightProduct::Operands& operands, int64_t first, Range range,
                          const TransformedLayout& layout, float* to) const;
  // A^T m A with bias and ReLU to `some` of all groups' channels; `sums` begin with the first of these.
  void finish_windows(Range some, const float* sums, const TransformedLayout& layout, Range range,
                      const lowering::Epilogue& epilogue, float* windows, const KeptSums& kept = {}) const;

 private:
  template <typename E>
  void transform_image_of(const E* image, Range range, const TransformedLayout& layout, float* to) const;

  TileGrid grid_;
  int64_t image_channels_, window_channels_;
  std::vector<float> zeros_;  // a position outside the image, of elements of any type
};

}  // namespace cortado::winograd
