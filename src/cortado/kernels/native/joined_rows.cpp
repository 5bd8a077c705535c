#include "cortado/kernels/native/joined_rows.h"

#include <algorithm>

namespace cortado::native {
namespace {

template <bool streaming>
void copy_run(const float* from, float* to, int64_t count) {
  by_lanes(0, count, [&]<typename V>(int64_t i) { store<streaming>(to + i, load<V>(from + i)); });
}

void copy_run(bool streaming, const float* from, float* to, int64_t count) {
  if (streaming) {
    copy_run<true>(from, to, count);
  } else {
    copy_run<false>(from, to, count);
  }
}

// Product of the extents that lie before `axis` in memory, where channels are last.
int64_t rows_before(const Shape& shape, int axis) {
  if (shape.rank() <= 2) return shape.count(0, axis);
  if (axis == 0) return 1;
  return shape[0] * (axis == 1 ? shape.count(2) : shape.count(2, axis));
}

}  // namespace

JoinedRows::JoinedRows(std::span<const Shape> parts, const Shape& whole, int axis)
    : rows_(rows_before(whole, whole.canonical_axis(axis))) {
  for (const Shape& part : parts) {
    offsets_.push_back(row_length_);
    lengths_.push_back(rows_ == 0 ? 0 : part.size() / rows_);
    row_length_ += lengths_.back();
  }
}

// run(part, offset in the part, offset in the whole, floats). A thread takes whole rows, or, where they are
// few, a share of each run that begins at a cache line of it.
template <typename Run>
void JoinedRows::for_each_run(Run&& run) const {
  if (rows_ >= compute_threads()) {
    parallel_ranges(rows_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (size_t p = 0; p < lengths_.size(); ++p) {
          run(p, row * lengths_[p], row * row_length_ + offsets_[p], lengths_[p]);
        }
      }
      finish_streaming();
    });
    return;
  }
  constexpr int64_t line = 16;
  for (int64_t row = 0; row < rows_; ++row) {
    for (size_t p = 0; p < lengths_.size(); ++p) {
      parallel_ranges((lengths_[p] + line - 1) / line, [&](int64_t begin, int64_t end) {
        int64_t first = begin * line, last = std::min(end * line, lengths_[p]);
        run(p, row * lengths_[p] + first, row * row_length_ + offsets_[p] + first, last - first);
        finish_streaming();
      });
    }
  }
}

void JoinedRows::join(std::span<const float* const> parts, float* whole) const {
  bool by_eight = std::ranges::all_of(lengths_, [](int64_t length) { return length % lanes == 0; });
  bool streaming = by_eight && wants_streaming(whole, rows_ * row_length_);
  for_each_run([&](size_t p, int64_t in_part, int64_t in_whole, int64_t count) {
    if (parts[p]) copy_run(streaming, parts[p] + in_part, whole + in_whole, count);
  });
}

void JoinedRows::part(const float* whole, std::span<float* const> parts) const {
  std::vector<bool> streaming;
  for (size_t p = 0; p < parts.size(); ++p) {
    streaming.push_back(parts[p] && wants_streaming(parts[p], rows_ * lengths_[p], lengths_[p]));
  }
  for_each_run([&](size_t p, int64_t in_part, int64_t in_whole, int64_t count) {
    if (parts[p]) copy_run(streaming[p], whole + in_whole, parts[p] + in_part, count);
  });
}

}  // namespace cortado::native
