#pragma once

#include "cortado/program/placement.h"

namespace cortado {

// Blocks of consecutive ranks that do the same, each with its own samples: rank i of any block does what rank
// i of the others does. What crosses blocks are collectives of all blocks, and what a rank of the first block
// reports, or sums and tells to all: outputs and losses. Thus the ranks of the second block stand for those
// of all after it.
struct EqualBlocks {
  int ranks = 1;  // of a block
  int blocks = 1;

  int job() const { return ranks * blocks; }
  // Of the job's first ranks, so many are all that differ.
  int different() const { return blocks < 3 ? job() : 2 * ranks; }
  // For how many ranks of another block rank `rank` stands, of those that differ; 1 in the first block.
  int stands_for(int rank) const { return blocks < 3 || rank < ranks ? 1 : blocks - 1; }
  bool same_block(int one, int other) const { return one / ranks == other / ranks; }
};

// The smallest equal blocks of a multiple of `unit` ranks. One block of all ranks where there are not at
// least three.
EqualBlocks equal_blocks(const Placement& placement, int unit);

}  // namespace cortado
