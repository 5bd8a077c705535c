#pragma once

#include <algorithm>
#include <array>

#include "cortado/base/parallel_for.h"
#include "cortado/base/shape.h"
#include "cortado/base/units.h"
#include "cortado/kernels/native/simd.h"

namespace cortado::native {

// A channels-last tensor as rows (everything but the channel) by channels.
struct ChannelRows {
  int64_t rows = 0;
  int64_t channels = 0;
  explicit ChannelRows(const Shape& local)
      : rows(local.size() / std::max<int64_t>(1, local[1])), channels(local[1]) {}
  int64_t size() const { return rows * channels; }
};

// Rows that are summed in float before a sum in double takes over.
inline constexpr int64_t rows_per_block = 64;

// Scratch that channel_sums<terms> needs: per thread, a sum in double and one in float for each channel.
template <int terms>
Bytes channel_sums_scratch(int64_t channels) {
  return {compute_threads() * terms * channels * int64_t{sizeof(double) + sizeof(float)}};
}

namespace detail {

template <int terms, typename V, typename Term>
inline void add_rows(float* sums, int64_t channels, int64_t first, int64_t row, int64_t rows, int64_t c,
                     Term&& term) {
  std::array<V, terms> total = term.template operator()<V>(first, row, c);
  for (int64_t r = 1; r < rows; ++r) {
    std::array<V, terms> next = term.template operator()<V>(first, row + r, c);
    for (int t = 0; t < terms; ++t) total[t] += next[t];
  }
  for (int t = 0; t < terms; ++t) {
    float* sum = sums + t * channels + c;
    store(sum, load<V>(sum) + total[t]);
  }
}

}  // namespace detail

// Returns, for each channel c and t in [0, terms), the sum over all rows of term t, as terms x channels
// doubles in `scratch`. term.template operator()<V>(first, row, c) gives the std::array<V, terms> of the
// lanes from c on, `first` being the first row of the block of rows; fold(first, rows, block sums in float,
// sums in double) adds a block to the sums. The result depends on the number of threads only by its rounding
// in double.
template <int terms, typename Term, typename Fold>
double* channel_sums(const ChannelRows& x, std::byte* scratch, Term&& term, Fold&& fold) {
  const int64_t each = terms * x.channels;
  const int threads = compute_threads();
  double* sums = reinterpret_cast<double*>(scratch);
  float* block_sums = reinterpret_cast<float*>(sums + threads * each);
  std::fill_n(sums, threads * each, 0.0);
  parallel_for(threads, [&](int64_t thread) {
    double* own_sums = sums + thread * each;
    float* own_block = block_sums + thread * each;
    const int64_t blocks = (x.rows + rows_per_block - 1) / rows_per_block;
    for (int64_t b = blocks * thread / threads; b < blocks * (thread + 1) / threads; ++b) {
      const int64_t first = b * rows_per_block, last = std::min(x.rows, first + rows_per_block);
      std::fill_n(own_block, each, 0.0f);
      int64_t row = first;
      for (; row + 4 <= last; row += 4) {
        by_lanes(0, x.channels, [&]<typename V>(int64_t c) {
          detail::add_rows<terms, V>(own_block, x.channels, first, row, 4, c, term);
        });
      }
      for (; row < last; ++row) {
        by_lanes(0, x.channels, [&]<typename V>(int64_t c) {
          detail::add_rows<terms, V>(own_block, x.channels, first, row, 1, c, term);
        });
      }
      fold(first, last - first, own_block, own_sums);
    }
  });
  for (int t = 1; t < threads; ++t) {
    for (int64_t i = 0; i < each; ++i) sums[i] += sums[t * each + i];
  }
  return sums;
}

template <int terms, typename Term>
double* channel_sums(const ChannelRows& x, std::byte* scratch, Term&& term) {
  return channel_sums<terms>(x, scratch, term, [&](int64_t, int64_t, const float* block, double* sums) {
    for (int64_t i = 0; i < terms * x.channels; ++i) sums[i] += block[i];
  });
}

// target[row, c] = value.template operator()<V>(row * channels + c, c). Walks from the last row to the first:
// after a pass in the other direction the last rows are still in the cache.
template <typename E, typename Value>
void map_rows(E* target, const ChannelRows& x, bool in_place, Value&& value) {
  auto pass = [&]<bool streaming>() {
    parallel_ranges(x.rows, [&](int64_t begin, int64_t end) {
      const int64_t step = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, x.channels));
      for (int64_t last = end; last > begin; last -= std::min(step, last - begin)) {
        for (int64_t row = std::max(begin, last - step); row < last; ++row) {
          const int64_t offset = row * x.channels;
          by_lanes(0, x.channels, [&]<typename V>(int64_t c) {
            store<streaming>(target + offset + c, value.template operator()<V>(offset + c, c));
          });
        }
      }
      if constexpr (streaming) finish_streaming();
    });
  };
  if (!in_place && wants_streaming(target, x.size(), x.channels)) {
    pass.template operator()<true>();
  } else {
    pass.template operator()<false>();
  }
}

}  // namespace cortado::native
