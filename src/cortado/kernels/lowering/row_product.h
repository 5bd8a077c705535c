#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/kernels/lowering/ahead.h"
#include "cortado/kernels/lowering/lattice.h"
#include "cortado/kernels/lowering/partitions.h"

namespace cortado::lowering {

// What is done to a finished sum: bias first, then leaky ReLU.
struct Epilogue {
  const float* bias = nullptr;  // [columns]
  bool rectify = false;
  float slope = 0;

  Epilogue from_channel(int64_t first) const { return {bias ? bias + first : nullptr, rectify, slope}; }
};

// The matrix product of forward, backward-data and the inner product: an *indirect* GEMM (implicit lowering:
// no im2col matrix exists; Dukhan, "The indirect convolution algorithm", 2019).
//
//   out[row][column] = start[column] + sum over tap, k of left(row, tap)[k] * right[tap][k][column]
//
// A row is a point (sample, d, h, w) of a lattice in the output tensor; at each tap it reads `depth`
// contiguous elements of the left tensor. Taps outside the left tensor read zeros, or are left out where they
// are outside for a whole tile of rows: where many are, as in small images with padding, rows of a tile are
// the same point of several samples. The right operand is packed in panels
// [columns / tile_columns][tap][depth][panel_width], zero padded.
//
// No sum depends on which other rows and columns there are, nor on the threads. With `parts`, a power of two,
// the depth is cut in as many: a sum goes over all taps of a part, then over parts in the tree of
// base/sum_tree.h; there is no epilogue.
//
// Factors and sums are floats. A left tensor in bf16 is widened a block of rows at a time, near the core;
// rows then read one tap at most. Sums are rounded to an output in bf16 once, in registers.
class RowProduct {
 public:
  struct Types {
    ElementType left = ElementType::f32, out = ElementType::f32;
  };
  explicit RowProduct(Lattice lattice, int parts = 1) : RowProduct(std::move(lattice), parts, Types{}) {}
  RowProduct(Lattice lattice, int parts, Types types);

  // `left` and `out` hold elements of their types.
  void run(const float* left, const float* right, float* out, const Epilogue& epilogue,
           std::byte* scratch) const;

  size_t scratch_bytes() const;
  int64_t right_elements() const;
  const Lattice& lattice() const { return lattice_; }

 private:
  // Part of the sum done in one go, so that a panel's part stays in cache: whole taps, or a part of one.
  struct DepthBlock {
    int64_t tap_begin, tap_end, begin, length;
    bool first, last;  // of its part
    int part;
  };
  struct Workspace;

  void order_rows();
  bool streams_to(const float* out) const;
  void block_depth();
  void add_depth_blocks(int part, int64_t begin, int64_t length);
  int kept_tiles() const;  // sums of parts, or of the depth so far, of each row
  int64_t widened_depth() const;
  Workspace workspace(std::byte* scratch, int thread, bool streams) const;
  void point_to_rows(const float* left, float* out, int64_t row_begin, int64_t row_end,
                     Workspace& work) const;
  void leave_out_zeros(int64_t row_count, const Workspace& work) const;
  const float* left_at(const float* left, int64_t element) const;
  float* out_at(float* out, int64_t element) const;
  const float* border_run(const float* line, int64_t position, Workspace& work) const;
  void widen_rows(int64_t row_count, Workspace& work) const;
  void multiply_block(int64_t row_count, int64_t panel_begin, int64_t panel_end, const float* right,
                      const Epilogue& epilogue, const Workspace& work) const;
  Ahead ahead_of(const float* row, int64_t offset, bool first_panel) const;
  void multiply_panel(const DepthBlock& block, int64_t row_begin, int64_t row_end, int64_t panel,
                      const float* right, const Epilogue& epilogue, const Workspace& work) const;

  Lattice lattice_;
  int parts_;
  Types types_;
  bool leaves_out_zeros_ = false;
  int64_t samples_ = 1;  // rows are in the order (sample / samples_, d, h, w, sample % samples_)
  std::optional<Lattice::Pitch> pitch_;
  std::vector<DepthBlock> depth_blocks_;
  RowBlocks blocks_;
  std::vector<float> zeros_;
};

}  // namespace cortado::lowering
