#include "cortado/kernels/native/joined_rows.h"

#include <algorithm>

#include "cortado/kernels/kernel.h"

namespace cortado::native {
namespace {

template <typename E>
constexpr int64_t elements_of_vector = sizeof(floats) / sizeof(E);

// Moves bits, whatever they mean: a vector at once, then element by element.
template <bool streaming, typename E>
void copy_run(const E* from, E* to, int64_t count) {
  int64_t i = 0;
  for (; i + elements_of_vector<E> <= count; i += elements_of_vector<E>)
    store<streaming>(elements<float>(to + i), load<floats>(elements<float>(from + i)));
  for (; i < count; ++i) to[i] = from[i];
}

template <typename E>
void copy_run(bool streaming, const E* from, E* to, int64_t count) {
  if (streaming) {
    copy_run<true>(from, to, count);
  } else {
    copy_run<false>(from, to, count);
  }
}

// wants_streaming() for vectors that copy_run() moves.
template <typename E>
bool streams(const E* address, int64_t count, int64_t row) {
  constexpr int64_t packed = sizeof(float) / sizeof(E);
  return row % packed == 0 && wants_streaming(elements<float>(address), count / packed, row / packed);
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

// run(part, offset in the part, offset in the whole, elements). A thread takes whole rows, or, where they are
// few, a share of each run that begins at a cache line of it: `line` elements.
template <typename Run>
void JoinedRows::for_each_run(int64_t line, Run&& run) const {
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

template <typename E>
void JoinedRows::join(std::span<const float* const> parts, float* whole) const {
  bool by_vectors =
      std::ranges::all_of(lengths_, [](int64_t length) { return length % elements_of_vector<E> == 0; });
  E* to = elements<E>(whole);
  bool streaming = by_vectors && streams(to, rows_ * row_length_, elements_of_vector<E>);
  for_each_run(64 / sizeof(E), [&](size_t p, int64_t in_part, int64_t in_whole, int64_t count) {
    if (parts[p]) copy_run(streaming, elements<E>(parts[p]) + in_part, to + in_whole, count);
  });
}

template <typename E>
void JoinedRows::part(const float* whole, std::span<float* const> parts) const {
  const E* from = elements<E>(whole);
  std::vector<bool> streaming;
  for (size_t p = 0; p < parts.size(); ++p) {
    streaming.push_back(parts[p] && streams(elements<E>(parts[p]), rows_ * lengths_[p], lengths_[p]));
  }
  for_each_run(64 / sizeof(E), [&](size_t p, int64_t in_part, int64_t in_whole, int64_t count) {
    if (parts[p]) copy_run(streaming[p], from + in_whole, elements<E>(parts[p]) + in_part, count);
  });
}

template void JoinedRows::join<float>(std::span<const float* const>, float*) const;
template void JoinedRows::join<bf16>(std::span<const float* const>, float*) const;
template void JoinedRows::part<float>(const float*, std::span<float* const>) const;
template void JoinedRows::part<bf16>(const float*, std::span<float* const>) const;

}  // namespace cortado::native
