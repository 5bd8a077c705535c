#pragma once

#include <cstdint>

#include "cortado/base/bf16.h"
#include "cortado/base/box.h"
#include "cortado/kernels/lowering/row_product.h"
#include "cortado/kernels/pairs/dot.h"
#include "cortado/kernels/pairs/rows.h"

namespace cortado::pairs {

// out[row][column] = start[column] + sum over k of left[row][k] * right[k][column], summed in f32 and rounded
// to bf16 once. The left operand is read where it lies, pair by pair; the right one is packed
// (right_operand.h). No sum depends on which other rows and columns there are, nor on the threads.
class RowProduct {
 public:
  // As many rows in both; an even number of channels on the left.
  RowProduct(const Rows& left, const Rows& out);

  void run(const bf16* left, const Word* right, bf16* out, const lowering::Epilogue& epilogue) const;

 private:
  struct Block;

  void point_to_rows(const bf16* left, bf16* out, Block& block) const;
  void multiply_panel(const Block& block, Range rows, int64_t panel, const Word* right,
                      const lowering::Epilogue& epilogue) const;
  void multiply_block(const Block& block, const Word* right, const lowering::Epilogue& epilogue) const;

  Rows left_, out_;
  bool left_dense_, out_dense_;
  int64_t panels_;
  lowering::RowBlocks blocks_;
};

}  // namespace cortado::pairs
