#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cortado/base/box.h"
#include "cortado/base/element_type.h"
#include "cortado/kernels/lowering/ahead.h"
#include "cortado/kernels/lowering/lattice.h"

namespace cortado::lowering {

// The gradient of the right operand of a RowProduct over the same lattice:
//
//   gradient[tap][k][column] = sum over rows of left(row, tap)[k] * out_gradient[row][column]
//
// in the panel order of the right operand. Blocks of rows are packed, the left operand to
// [piece][copy][k / tile_height_][line][w][tile_height_] and the gradient to [panel][row][tile_columns]. Taps
// along w are copies; taps along h are shifts by lines (copies where strided), so that the sum over a piece
// is one contiguous run. Where the gradient is small and rows are many, each thread packs and sums blocks of
// its own, and these sums are added up in order: what a thread packed is in its own caches, which may be far
// from another's. Else all threads pack a block, then share the tiles of the result. Where one of the
// operands of a pointwise product has few channels, packing takes as long as multiplying: there both are read
// where they lie. On one thread no element depends on which other columns there are where the columns of the
// whole, of which the lattice has a part, are given as `all_columns`. Operands in bf16 are widened as they
// are packed.
class WeightProduct {
 public:
  struct Types {
    ElementType left = ElementType::f32, out_gradient = ElementType::f32;
  };
  explicit WeightProduct(Lattice lattice, int64_t all_columns = 0)
      : WeightProduct(std::move(lattice), all_columns, Types{}) {}
  WeightProduct(Lattice lattice, int64_t all_columns, Types types);

  // Of the operands' types; `rectified` and `masked` are of the gradient's.
  struct Operands {
    const float* left = nullptr;
    const float* out_gradient = nullptr;
    const float* rectified = nullptr;  // with a fused ReLU: its output, which masks `out_gradient`
    float slope = 0;                   // of that ReLU
    float* masked = nullptr;           // where the masked gradient goes, may be `out_gradient`; or null

    // Those of a group whose channels begin there, of operands in f32.
    Operands from_channels(int64_t left_channel, int64_t out_channel) const;
  };
  // `gradient` and `bias_gradient` ([columns]) may be null.
  void run(const Operands& operands, float* gradient, float* bias_gradient, std::byte* scratch) const;

  size_t scratch_bytes() const;

 private:
  // Output lines [begin, end) along h of one plane (sample, d).
  struct Piece {
    int64_t sample, d, begin, end;
  };
  // Pieces packed together; piece i's rows begin at first_row[i].
  struct Block {
    std::vector<Piece> pieces;
    std::vector<int64_t> first_row;
    int64_t begin = 0, rows = 0;  // of all rows
  };
  // `length` rows of a sum, from these offsets in the packed left operand (of tile 0) and in a panel.
  struct Segment {
    int64_t left, right, length;
  };
  // What is summed while a tile of the result stays in registers: rows of the block, as segments of each tap.
  struct Chunk {
    int64_t row_begin, row_end;
    std::vector<std::vector<Segment>> taps;
  };

  // What a thread has to itself: a block, packed, and its sums where it has them.
  struct Part {
    float *left, *right, *gradient, *bias;
  };

  void choose_parts();
  void choose_blocks();
  std::vector<Chunk> chunks_of(const Block& block) const;
  void add_segments(Chunk& chunk, const Block& block, size_t piece, int64_t begin, int64_t end) const;
  Part part(int64_t index, float* memory) const;
  int64_t part_elements() const;
  void sum_in_place(Range rows, const Operands& operands, const Part& part) const;
  void sum_blocks(Range blocks, const Operands& operands, const Part& part) const;
  void pack_left(const Block& block, const float* left, float* packed) const;
  template <typename E>
  void pack_left_rows(const Block& block, const E* left, float* packed) const;
  template <typename E>
  void pack_line(const E* line, int64_t offset, float* to) const;
  template <typename E>
  void pack_gradient_rows(const Block& block, const Operands& operands, float* packed) const;
  void pack_gradient(const Block& block, const Operands& operands, float* packed) const;
  NextBlock next_rows(Range rows, const Operands& operands) const;
  NextBlock after(int64_t block, int64_t end, const Operands& operands) const;
  void sum_chunks(const std::vector<Chunk>& chunks, const Part& part, bool first,
                  const NextBlock& next) const;
  void add_bias(const float* right, int64_t rows, int64_t step, int64_t panel, bool first, float* bias) const;

  bool shifts_lines() const { return lattice_.axis[1].step == 1; }
  int64_t copies() const;
  int64_t packed_lines(int64_t out_lines) const;  // of a piece
  int64_t line_elements() const;
  int64_t tile_elements() const { return lines_ * line_elements(); }
  int64_t piece_elements() const { return copies() * tiles_ * tile_elements(); }
  int64_t gradient_elements() const;

  Lattice lattice_;
  int64_t all_columns_;
  Types types_;
  int64_t tiles_, tile_height_, panels_;  // tiles of equal height: 9 rows are 5 and 4, not 8 and 1
  int64_t parts_ = 1;                     // threads that sum on their own; 1: all together
  std::optional<Lattice::Pitch> pitch_;
  // Rows are read where they lie, those in bf16 from a copy, unless a ReLU masks them.
  bool in_place_ = false;
  std::vector<Block> blocks_;
  int64_t block_rows_ = 0, block_pieces_ = 0;  // the most of any block
  int64_t lines_ = 0;                          // packed lines of a piece
};

}  // namespace cortado::lowering
