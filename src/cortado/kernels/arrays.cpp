#include "cortado/kernels/arrays.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/base/finite.h"
#include "cortado/kernels/native/elementwise.h"

namespace cortado::arrays {
namespace {

using native::floats, native::ints, native::lanes, native::load, native::map_elements;

constexpr int64_t block = 8192;

// work(first, last) for each block of fixed size, in parallel: which blocks there are does not depend on
// threads.
template <typename Work>
void for_each_block(int64_t count, Work&& work) {
  parallel_for((count + block - 1) / block,
               [&](int64_t b) { work(b, b * block, std::min(count, (b + 1) * block)); });
}

template <size_t terms_count, typename E>
void sum_fixed(E* target, const E* const* terms, int64_t count) {
  std::array<const E*, terms_count> from;
  std::copy_n(terms, terms_count, from.begin());
  bool in_place = std::find(from.begin(), from.end(), target) != from.end();
  map_elements(target, count, in_place, [from]<typename V>(int64_t i) {
    V total = load<V>(from[0] + i);
    for (size_t t = 1; t < terms_count; ++t) total += load<V>(from[t] + i);
    return total;
  });
}

template <typename E>
void sum_any(E* target, std::span<const E* const> terms, int64_t count) {
  ensure(!terms.empty(), "a sum of no terms");
  switch (terms.size()) {
    case 1:
      return sum_fixed<1>(target, terms.data(), count);
    case 2:
      return sum_fixed<2>(target, terms.data(), count);
    case 3:
      return sum_fixed<3>(target, terms.data(), count);
    case 4:
      return sum_fixed<4>(target, terms.data(), count);
    default:
      break;
  }
  map_elements(target, count, true, [terms]<typename V>(int64_t i) {
    V total = load<V>(terms[0] + i);
    for (size_t t = 1; t < terms.size(); ++t) total += load<V>(terms[t] + i);
    return total;
  });
}

template <typename From, typename To>
void convert_elements(const From* source, To* target, int64_t count) {
  map_elements(target, count, false, [=]<typename V>(int64_t i) { return load<V>(source + i); });
}

bool any_nonfinite(const float* x, int64_t first, int64_t last) {
  ints bad{};
  int64_t i = first;
  for (; i + lanes <= last; i += lanes) {
    ints exponent = std::bit_cast<ints>(load<floats>(x + i)) & 0x7F800000;
    bad |= exponent == 0x7F800000;
  }
  bool any = false;
  for (int64_t lane = 0; lane < lanes; ++lane) any |= bad[lane] != 0;
  for (; i < last; ++i) any |= !is_finite(x[i]);
  return any;
}

double block_sum_of_squares(const float* x, int64_t first, int64_t last) {
  using four_floats = float __attribute__((vector_size(16)));
  using four_doubles = double __attribute__((vector_size(32)));
  four_doubles totals[4] = {};
  int64_t i = first;
  for (; i + 16 <= last; i += 16) {
    for (int part = 0; part < 4; ++part) {
      four_doubles value = __builtin_convertvector(load<four_floats>(x + i + 4 * part), four_doubles);
      totals[part] += value * value;
    }
  }
  four_doubles sum = (totals[0] + totals[1]) + (totals[2] + totals[3]);
  double total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  for (; i < last; ++i) total += double{x[i]} * double{x[i]};
  return total;
}

}  // namespace

void copy(float* target, const float* source, int64_t count) { sum(target, std::array{source}, count); }

void add(float* target, const float* a, const float* b, int64_t count) {
  sum(target, std::array{a, b}, count);
}

void sum(float* target, std::span<const float* const> terms, int64_t count) { sum_any(target, terms, count); }
void sum(bf16* target, std::span<const bf16* const> terms, int64_t count) { sum_any(target, terms, count); }

void convert(const bf16* source, float* target, int64_t count) { convert_elements(source, target, count); }
void convert(const float* source, bf16* target, int64_t count) { convert_elements(source, target, count); }

double sum_of_squares(const float* x, int64_t count) {
  std::vector<double> sums((count + block - 1) / block);
  for_each_block(
      count, [&](int64_t b, int64_t first, int64_t last) { sums[b] = block_sum_of_squares(x, first, last); });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

int64_t first_non_finite(const float* x, int64_t count) {
  std::vector<uint8_t> found((count + block - 1) / block);
  for_each_block(count,
                 [&](int64_t b, int64_t first, int64_t last) { found[b] = any_nonfinite(x, first, last); });
  auto hit = std::find(found.begin(), found.end(), 1);
  if (hit == found.end()) return -1;
  int64_t first = (hit - found.begin()) * block;
  return std::find_if_not(x + first, x + count, is_finite) - x;
}

}  // namespace cortado::arrays
