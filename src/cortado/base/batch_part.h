#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cortado/base/box.h"

namespace cortado {

// Samples of a batch whose first top has shape `first`: its first extent, or 1.
inline int64_t batch_size_of(const Shape& first) { return first.rank() > 0 ? first[0] : 1; }
// True when a top of batches of `batch` samples has one row a sample; others belong to the batch as a whole.
inline bool has_row_per_sample(const Shape& top, int64_t batch) { return top.rank() > 0 && top[0] == batch; }

// The part of a source layer's batches that a rank reads.
struct BatchPart {
  Range samples;          // of the batch, perhaps none
  std::vector<Box> tops;  // per top, of the whole tensor; along axis 0 `samples`, where it has a row a sample
};

// Of tops of these shapes: some samples whole, and whole tops that have no row a sample.
BatchPart part_of_samples(std::span<const Shape> tops, Range samples);

// True where the box has all of the tensor but, perhaps, some of its rows.
bool has_whole_rows(const Shape& tensor, const Box& box);

// Visits the elements of a box as they lie in the memory (channels last) of a tensor that fills `whole`:
// calls visit(first, count) for each run of them, in the order of the box's own memory.
void for_each_run(const Box& whole, const Box& box,
                  const std::function<void(int64_t first, int64_t count)>& visit);

// Copies a box out of a tensor that fills `whole`, both channels last.
void cut_out(const Box& whole, const float* from, const Box& box, float* to);

}  // namespace cortado
