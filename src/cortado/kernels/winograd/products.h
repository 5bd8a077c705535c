#pragma once

#include "cortado/base/box.h"
#include "cortado/kernels/lowering/convolution_products.h"
#include "cortado/kernels/winograd/filters.h"
#include "cortado/kernels/winograd/tiles.h"

namespace cortado::winograd {

// The products of a convolution by the minimal filtering F (transforms.h).

// Forward or, from the windows to the image, backward data. Each thread takes blocks of tiles: transforms
// their image positions, makes a matrix product for each element of them and the transformed filters, and
// finishes the windows while the sums are in its cache. Backward, parts of the windows' channels
// (ConvolutionProblem) are summed on their own, and their sums added up after the transform. Large filters
// are transformed, and used, chunk by chunk of their columns.
template <typename F>
class TileProduct : public lowering::DataProduct {
 public:
  enum class Direction { forward, backward };
  TileProduct(const lowering::ConvolutionProblem& problem, Direction direction);

  void run(const float* from, const float* weight, float* to, const lowering::Epilogue& epilogue,
           std::byte* scratch) const override;
  size_t scratch_bytes() const override;

 private:
  static FilterPanels<F> filters_of(const lowering::WeightPanels& weight, Direction direction);
  void choose_blocks();
  // `chunk`: counted over all groups; `weight`: of its group.
  void run_chunk(int64_t chunk, const float* from, const float* weight, float* to,
                 const lowering::Epilogue& epilogue, std::byte* scratch) const;
  // The sums over `depth` of some panels' columns, which begin with the first of these.
  void multiply(const float* left, const float* filters, int64_t tiles, Range depth, Range panels,
                float* sums) const;
  // The sums of a block of tiles, transformed back.
  void finish_block(const float* left, const float* filters, Range range, Range panels, int64_t chunk,
                    const lowering::Epilogue& epilogue, float* sums, float* to) const;
  int64_t kept_elements() const;  // of a level of the tree of parts
  int kept_levels() const;
  int64_t thread_elements() const;

  Direction direction_;
  int parts_;  // of the depth
  lowering::WeightPanels weight_;
  int64_t chunks_;           // of a group's columns
  FilterPanels<F> filters_;  // of a chunk
  Tiles<F> tiles_;
  int64_t block_ = 0, blocks_ = 0;  // tiles of a block, blocks of tiles
  int64_t column_parts_ = 1;        // parts the panels are split in to occupy all threads
  int64_t copies_ = 1;              // of the transformed filters: one, or one a thread
  TransformedLayout left_, sums_;
};

// Backward weights: blocks of tiles of the image and of the gradient are transformed and multiplied; the sums
// stay transformed to the end. Where the sums are small, parts of the tiles have their own, several a thread
// where there is room, and they are added up in order. Else all threads transform a block, then share its
// products. Large sums are made chunk by chunk of their columns.
template <typename F>
class TileSums : public lowering::FilterProduct {
 public:
  explicit TileSums(const lowering::ConvolutionProblem& problem);

  void run(const lowering::WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
           std::byte* scratch) const override;
  size_t scratch_bytes() const override;

 private:
  // A part of the tiles and its memory: its sums, those of the bias and, of the thread that takes it, a
  // block's transformed operands.
  struct Part {
    Range tiles;
    float *sums, *bias, *left, *right;
  };
  void choose_blocks();
  void run_group(int64_t group, const lowering::WeightProduct::Operands& operands, float* weight_gradient,
                 float* bias_gradient, std::byte* scratch) const;
  Part part(int64_t index, int64_t taker, float* memory) const;
  int64_t part_elements() const;
  // Sums one part, on the compute threads of the caller's partition.
  void sum(const Part& part, int64_t group, const lowering::WeightProduct::Operands& operands, bool weights,
           bool bias) const;
  void add_product(const Part& part, int64_t item, int64_t tiles, bool first) const;
  void add_bias(const Part& part, int64_t panel, int64_t tiles, bool first) const;

  int64_t chunks_;  // of a group's columns; each is a group of the weight here
  lowering::WeightPanels weight_;
  FilterPanels<F> sum_panels_;
  Tiles<F> tiles_;
  int64_t all_columns_;             // of the layer, where the sum of a column must not depend on the others
  int64_t parts_ = 1, takers_ = 1;  // parts of the tiles, and of the threads that sum them
  int64_t block_ = 0;               // most tiles of a block
  TransformedLayout left_, right_;
};

}  // namespace cortado::winograd
