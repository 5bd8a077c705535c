#include "cortado/base/batch_part.h"

#include <algorithm>

namespace cortado {

BatchPart part_of_samples(std::span<const Shape> tops, Range samples) {
  BatchPart part{.samples = samples, .tops = {}};
  const int64_t batch = batch_size_of(tops[0]);
  for (const Shape& top : tops) {
    part.tops.push_back(Box::whole(top));
    if (has_row_per_sample(top, batch)) part.tops.back()[0] = samples;
  }
  return part;
}

bool has_whole_rows(const Shape& tensor, const Box& box) {
  for (int axis = 1; axis < tensor.rank(); ++axis)
    if (box[axis] != Range{0, tensor[axis]}) return false;
  return true;
}

void for_each_run(const Box& whole, const Box& box,
                  const std::function<void(int64_t first, int64_t count)>& visit) {
  if (box.empty()) return;
  const int rank = box.rank();
  const Strides strides = channels_last_strides(whole.shape());
  int64_t run = 1;
  int inner = rank;  // places from here on are one run
  for (bool joined = true; inner > 0 && joined;) {
    const int axis = memory_axis(rank, --inner);
    run *= box[axis].size();
    joined = box[axis] == whole[axis];
  }
  const std::function<void(int, int64_t)> go = [&](int place, int64_t first) {
    if (place == inner) {
      for (; place < rank; ++place) {
        const int axis = memory_axis(rank, place);
        first += (box[axis].begin - whole[axis].begin) * strides[axis];
      }
      return visit(first, run);
    }
    const int axis = memory_axis(rank, place);
    for (int64_t i = box[axis].begin; i < box[axis].end; ++i)
      go(place + 1, first + (i - whole[axis].begin) * strides[axis]);
  };
  go(0, 0);
}

void cut_out(const Box& whole, const float* from, const Box& box, float* to) {
  for_each_run(whole, box, [&](int64_t first, int64_t count) { to = std::copy_n(from + first, count, to); });
}

}  // namespace cortado
