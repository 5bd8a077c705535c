#pragma once

#include <cstddef>
#include <cstdint>

#include "cortado/base/bf16.h"
#include "cortado/base/box.h"
#include "cortado/kernels/pairs/dot.h"
#include "cortado/kernels/pairs/rows.h"

namespace cortado::pairs {

// gradient[output][k] = sum over rows of windows[row][output] * image[row][k]: the gradient of the weights,
// in f32, from the image and the gradient of the windows.
//
// Blocks of rows are packed, so that the numbers of two rows are a word: the image in panels
// [k / tile_columns][row / 2][tile_columns], the windows in tiles [output / tile_rows][row / 2][tile_rows].
// Where the gradient is small and rows are many, each thread packs and sums rows of its own, and these sums
// are added up in order: what a thread packed is in its own caches. Else all threads pack a block, then share
// the result.
class WeightProduct {
 public:
  explicit WeightProduct(const PointwiseRows& rows);

  struct Operands {
    const bf16 *image, *windows;
  };
  // `bias`, the sums of the windows over rows, may be null; so may `gradient`.
  void run(const Operands& operands, float* gradient, float* bias, std::byte* scratch) const;

  size_t scratch_bytes() const;

 private:
  // What one thread, or all together, packs and sums.
  struct Part {
    Word *panels, *tiles;
    float *gradient, *bias;
  };

  struct Block;

  void choose_blocks();
  int64_t gradient_elements() const { return rows_.image.channels * rows_.windows.channels; }
  int64_t part_bytes() const;
  Part part(int64_t index, std::byte* scratch, float* gradient, float* bias) const;
  void sum_rows(Range rows, const Operands& operands, const Part& part) const;
  void pack(Range rows, const Operands& operands, const Part& part) const;
  lowering::NextBlock next(Range rows, const Operands& operands) const;
  void sum_block(const Block& block, const Part& part) const;
  void sum_tiles(int64_t panel, Range tiles, const Block& block, const Part& part) const;
  void add_parts(float* gradient, float* bias, std::byte* scratch) const;

  PointwiseRows rows_;
  bool dense_;  // the image
  int64_t panels_, tiles_;
  int64_t parts_ = 1;          // threads that sum on their own; 1: all together
  int64_t block_words_ = 1;    // rows of a block are twice as many
  int64_t tiles_at_once_ = 1;  // of an item that threads share
};

}  // namespace cortado::pairs
