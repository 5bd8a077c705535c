#include "cortado/exec/box_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cortado {
namespace {

// Axes in the order of memory, slowest first.
int memory_axis(int rank, int i) { return i == 0 || rank <= 2 ? i : i == rank - 1 ? 1 : i + 1; }

// Calls run(from, to, floats) for each run of memory that `box` is in both parts.
template <typename Run>
void for_each_run(const TensorPart& from, const TensorPart& to, const Box& box, Run&& run) {
  const int rank = box.rank();
  if (box.empty()) return;
  const Strides from_strides = channels_last_strides(from.box.shape());
  const Strides to_strides = channels_last_strides(to.box.shape());
  const float* source = from.memory;
  float* target = to.memory;
  for (int axis = 0; axis < rank; ++axis) {
    source += (box[axis].begin - from.box[axis].begin) * from_strides[axis];
    target += (box[axis].begin - to.box[axis].begin) * to_strides[axis];
  }
  // The fastest axes that are whole in both join into one run.
  int outer = rank;
  int64_t floats = 1;
  while (outer > 0) {
    const int axis = memory_axis(rank, outer - 1);
    floats *= box[axis].size();
    --outer;
    if (box[axis] != from.box[axis] || box[axis] != to.box[axis]) break;
  }
  std::array<int64_t, Shape::max_rank> at{};
  while (true) {
    run(source, target, floats);
    int i = outer - 1;
    for (; i >= 0; --i) {
      const int axis = memory_axis(rank, i);
      source += from_strides[axis];
      target += to_strides[axis];
      if (++at[i] < box[axis].size()) break;
      source -= at[i] * from_strides[axis];
      target -= at[i] * to_strides[axis];
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

}  // namespace

void copy_box(const TensorPart& from, const TensorPart& to, const Box& box) {
  for_each_run(from, to, box, [](const float* source, float* target, int64_t floats) {
    std::memcpy(target, source, static_cast<size_t>(floats) * sizeof(*target));
  });
}

void add_box(const TensorPart& from, const TensorPart& to, const Box& box) {
  for_each_run(from, to, box, [](const float* source, float* target, int64_t floats) {
    for (int64_t i = 0; i < floats; ++i) target[i] += source[i];
  });
}

}  // namespace cortado
