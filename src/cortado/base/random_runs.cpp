#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "cortado/base/philox.h"
#include "cortado/base/random.h"

namespace cortado {
namespace {

constexpr int block = 256;      // elements at a time; the loops over them become vector instructions
constexpr int few = block / 8;  // so many take as long one by one

struct Draws {
  uint32_t first[block], second[block];
};

// philox() of a block of neighbours, two draws of each.
void draw(uint64_t index, uint32_t iteration, std::array<uint32_t, 2> key, Draws& draws) {
#pragma omp simd
  for (int i = 0; i < block; ++i) {
    const uint64_t at = index + static_cast<uint64_t>(i);
    uint32_t counter0 = static_cast<uint32_t>(at), counter1 = static_cast<uint32_t>(at >> 32);
    uint32_t counter2 = iteration, counter3 = 0;
    philox_rounds(counter0, counter1, counter2, counter3, key[0], key[1]);
    draws.first[i] = counter0;
    draws.second[i] = counter1;
  }
}

// AVX2 converts signed numbers alone.
double real(uint32_t value) { return static_cast<double>(static_cast<int32_t>(value ^ 0x80000000)) + 0x1p31; }

// log(x) of a normal x > 0: x = 2^e m with m in [sqrt(1/2), sqrt(2)), and log(m) = 2 atanh((m - 1) / (m + 1))
// by its series.
double logarithm(double x) {
  constexpr uint64_t bias = uint64_t{1023} << 52, root = 0x3FE6A09E667F3BCD;  // sqrt(1/2)
  const uint64_t bits = std::bit_cast<uint64_t>(x), exponent = (bits - root + bias) >> 52;
  const double m = std::bit_cast<double>(bits - (exponent << 52) + bias);
  const double e = std::bit_cast<double>(exponent | uint64_t{0x433} << 52) - (0x1p52 + 1023);
  const double s = (m - 1) / (m + 1), square = s * s;
  double series = 0;
  for (int n = 21; n >= 3; n -= 2) series = series * square + 2.0 / n;
  return e * std::numbers::ln2 + (2 * s + s * square * series);
}

// cos(2 pi turn / 2^32), as the sine of what is left to a quarter turn, by its series.
double cosine(uint32_t turn) {
  const uint32_t half = std::min(turn, 0 - turn);  // cos(-x) = cos(x)
  const double x = static_cast<int32_t>(0x40000000 - half) * (2 * std::numbers::pi * 0x1p-32), square = x * x;
  double series = 1;
  for (int n = 20; n >= 2; n -= 2) series = 1 - series * square * (1.0 / (n * (n + 1)));
  return x * series;
}

}  // namespace

void RandomStream::uniforms(uint64_t first, int64_t count, double low, double high, float* values) const {
  Draws draws;
  for (; count > few; first += block, values += block, count -= block) {
    draw(first, static_cast<uint32_t>(iteration), key(), draws);
    const int here = static_cast<int>(std::min<int64_t>(count, block));
    for (int i = 0; i < here; ++i)
      values[i] = static_cast<float>(low + (high - low) * (real(draws.first[i]) * 0x1p-32));
  }
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(uniform(first + static_cast<uint64_t>(i), 0, low, high));
}

// Log and cosine are exact to a few units in double's last place. Where that leaves open to which float a
// value is rounded, which happens twice in a million, normal() decides.
void RandomStream::normals(uint64_t first, int64_t count, double mean, double deviation,
                           float* values) const {
  Draws draws;
  float least[block], most[block];
  for (; count > few; first += block, values += block, count -= block) {
    draw(first, static_cast<uint32_t>(iteration), key(), draws);
#pragma omp simd
    for (int i = 0; i < block; ++i) {
      const double radius = deviation * std::sqrt(-2 * logarithm((real(draws.first[i]) + 1) * 0x1p-32));
      const double value = mean + radius * cosine(draws.second[i]);
      const double error = std::abs(radius) * 0x1p-47 + std::abs(mean) * 0x1p-50;
      least[i] = static_cast<float>(value - error);
      most[i] = static_cast<float>(value + error);
    }
    const int here = static_cast<int>(std::min<int64_t>(count, block));
    for (int i = 0; i < here; ++i)
      values[i] = least[i] == most[i]
                      ? least[i]
                      : static_cast<float>(normal(first + static_cast<uint64_t>(i), 0, mean, deviation));
  }
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(normal(first + static_cast<uint64_t>(i), 0, mean, deviation));
}

}  // namespace cortado
