#pragma once

#include <array>
#include <numbers>

#include "cortado/kernels/lowering/microkernel.h"

namespace cortado::winograd {

// Winograd's minimal filtering F(m x m, r x r), Lavin and Gray 2016, section 4. A tile y of m x m windows of
// the (m + r - 1) x (m + r - 1) image positions d with the filter g is
//
//   y = A^T [(G g G^T) . (B^T d B)] A        (. is the product element by element)
//
// and, being bilinear, has the gradient dg = G^T [(A dy A^T) . (B^T d B)] G.
//
// Along a line it multiplies polynomials by their values at m + r - 1 points (Toom and Cook): 0, pairs of x
// and -x, and infinity, where the value is the highest coefficient. A row of A has the powers of its point, a
// row of G the powers times the point's weight, and a row of B^T is a polynomial that vanishes at all points
// but its own. With s = sqrt(2), t = 1/s:
//
//            F(2x2, 3x3)        F(4x4, 3x3), F(2x2, 5x5)      F(4x4, 5x5)
//
//   points   0, 1, -1, inf.     0, t, -t, s, -s, inf.         0, 1, -1, 2, -2, 1/2, -1/2, inf.
//   weights  -1, 1/2, 1         1, -2/3, 1/6, 1               -1, -2/9, 1/90, 32/45, 1
//
//            |-1  0  1  0|      |1    0 -5/2    0  1  0|      |-1    0  21/4   0  -21/4    0   1  0|
//   B^T      | 0  1  1  0|      |0   -s   -2    t  1  0|      | 0    1    1 -17/4 -17/4    1   1  0|
//            | 0 -1  1  0|      |0    s   -2   -t  1  0|      | 0   -1    1  17/4 -17/4   -1   1  0|
//            | 0 -1  0  1|      |0 -t/2 -1/2    s  1  0|      | 0  1/2  1/4  -5/2  -5/4    2   1  0|
//                               |0  t/2 -1/2   -s  1  0|      | 0 -1/2  1/4   5/2  -5/4   -2   1  0|
//                               |0    1    0 -5/2  0  1|      | 0    2    4  -5/2    -5  1/2   1  0|
//                                                             | 0   -2    4   5/2    -5 -1/2   1  0|
//                                                             | 0   -1    0  21/4     0 -21/4  0  1|
//
// Rows of x and -x differ in the sign of odd powers. F(2x2, 3x3) adds and halves: sums of small integers stay
// exact. More points magnify rounding: Lavin and Gray's 1 and 2 lose five times what t and s do, which lose
// as much as direct sums (docs/explanation/winograd.md has what is measured and tested).
using lowering::Vector;

template <int length>
struct Line {
  Vector at[length];
  Vector& operator[](int i) { return at[i]; }
  const Vector& operator[](int i) const { return at[i]; }
};

// The numbers in the matrices of `span` points. Even powers are exact in float; others and the weights are
// rounded once.
template <int span>
struct Points {
  static constexpr int pairs = span / 2 - 1;
  using Polynomial = std::array<float, pairs + 1>;  // coefficients, the constant one first

  // A pair's x, and its square.
  struct Pair {
    float x, squared;
  };
  static constexpr float sqrt2 = std::numbers::sqrt2_v<float>;
  static constexpr std::array<Pair, 3> of_pairs = pairs == 2
                                                      ? std::array<Pair, 3>{{{sqrt2 / 2, 0.5f}, {sqrt2, 2}}}
                                                      : std::array<Pair, 3>{{{1, 1}, {2, 4}, {0.5f, 0.25f}}};

  // Powers of each pair's x: powers[pair][i] is x^i.
  static constexpr std::array<std::array<float, span>, pairs> powers = [] {
    std::array<std::array<float, span>, pairs> all{};
    for (int pair = 0; pair < pairs; ++pair) {
      all[pair] = {1, of_pairs[pair].x};
      for (int i = 2; i < span; ++i) all[pair][i] = all[pair][i - 2] * of_pairs[pair].squared;
    }
    return all;
  }();

  // The product of (y - x^2) over all pairs but one; last, over all pairs.
  static constexpr std::array<Polynomial, pairs + 1> products = [] {
    std::array<Polynomial, pairs + 1> all{};
    for (int one = 0; one <= pairs; ++one) {
      all[one][0] = 1;
      for (int pair = 0; pair < pairs; ++pair)
        for (int i = pairs; pair != one && i >= 0; --i)
          all[one][i] = (i > 0 ? all[one][i - 1] : 0) - powers[pair][2] * all[one][i];
    }
    return all;
  }();

  // One over what a row of B^T is at its point: for each pair and, last, for 0.
  static constexpr std::array<float, pairs + 1> weights = [] {
    std::array<float, pairs + 1> all{};
    for (int pair = 0; pair < pairs; ++pair) {
      double value = 0;
      for (int i = 0; i < pairs; ++i) value += 2 * products[pair][i] * powers[pair][2 * i + 2];
      all[pair] = static_cast<float>(1 / value);
    }
    all[pairs] = 1 / products[pairs][0];
    return all;
  }();
};

// The sum of coefficients[i] * line[first + 2 i].
template <int terms, size_t size, int length>
[[gnu::always_inline]] inline Vector sum_of_every_second(const std::array<float, size>& coefficients,
                                                         const Line<length>& line, int first) {
  Vector sum = coefficients[0] * line[first];
#pragma GCC unroll 8
  for (int i = 1; i < terms; ++i) sum += coefficients[i] * line[first + 2 * i];
  return sum;
}

// B^T d.
template <int span>
[[gnu::always_inline]] inline Line<span> polynomials_of(const Line<span>& d) {
  using P = Points<span>;
  constexpr int pairs = P::pairs;
  Line<span> values;
  values[0] = sum_of_every_second<pairs + 1>(P::products[pairs], d, 0);
#pragma GCC unroll 8
  for (int pair = 0; pair < pairs; ++pair) {
    const Vector even = sum_of_every_second<pairs>(P::products[pair], d, 2);
    const Vector odd = P::powers[pair][1] * sum_of_every_second<pairs>(P::products[pair], d, 1);
    values[2 * pair + 1] = even + odd;
    values[2 * pair + 2] = even - odd;
  }
  values[span - 1] = sum_of_every_second<pairs + 1>(P::products[pairs], d, 1);
  return values;
}

// A c: a polynomial of `count` coefficients at the points.
template <int span, int count>
[[gnu::always_inline]] inline Line<span> values_at_points(const Line<count>& c) {
  using P = Points<span>;
  Line<span> values;
  values[0] = c[0];
#pragma GCC unroll 8
  for (int pair = 0; pair < P::pairs; ++pair) {
    Vector even = c[0], odd = c[1];
#pragma GCC unroll 8
    for (int i = 2; i < count; i += 2) even += P::powers[pair][i] * c[i];
#pragma GCC unroll 8
    for (int i = 3; i < count; i += 2) odd += P::powers[pair][i - 1] * c[i];
    odd *= P::powers[pair][1];
    values[2 * pair + 1] = even + odd;
    values[2 * pair + 2] = even - odd;
  }
  values[span - 1] = c[count - 1];
  return values;
}

// A^T m.
template <int count, int span>
[[gnu::always_inline]] inline Line<count> sums_over_points(const Line<span>& m) {
  using P = Points<span>;
  Line<count> sums;
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) {
    const auto term = [&](int pair) {
      const Vector plus = m[2 * pair + 1], minus = m[2 * pair + 2];
      return P::powers[pair][i] * (i % 2 == 0 ? plus + minus : plus - minus);
    };
    sums[i] = term(0);
#pragma GCC unroll 8
    for (int pair = 1; pair < P::pairs; ++pair) sums[i] += term(pair);
  }
  sums[0] += m[0];
  sums[count - 1] += m[span - 1];
  return sums;
}

// Values times the weights of their points.
template <int span>
[[gnu::always_inline]] inline Line<span> weighed(Line<span> values) {
  using P = Points<span>;
  values[0] *= P::weights[P::pairs];
#pragma GCC unroll 8
  for (int i = 1; i < span - 1; ++i) values[i] *= P::weights[(i - 1) / 2];
  return values;
}

// F(side x side, kernel x kernel): its matrices as transforms of a line of vectors. The elements of the
// middle are numbered row by row.
template <int side, int kernel>
struct Filtering {
  static constexpr int windows = side, taps = kernel, span = side + kernel - 1, positions = span * span;

  // B^T d.
  [[gnu::always_inline]] static Line<span> image(const Line<span>& d) { return polynomials_of(d); }
  // G g.
  [[gnu::always_inline]] static Line<span> filter(const Line<taps>& g) {
    return weighed(values_at_points<span>(g));
  }
  // A^T m.
  [[gnu::always_inline]] static Line<windows> finish_windows(const Line<span>& m) {
    return sums_over_points<windows>(m);
  }
  // A dy.
  [[gnu::always_inline]] static Line<span> gradient(const Line<windows>& y) {
    return values_at_points<span>(y);
  }
  // G^T m.
  [[gnu::always_inline]] static Line<taps> finish_filter(const Line<span>& m) {
    return sums_over_points<taps>(weighed(m));
  }
};

// A type for each filtering, and the name of the implementation that runs it.
struct F2x2 : Filtering<2, 3> {
  static constexpr const char* name = "winograd";
};
struct F4x4 : Filtering<4, 3> {
  static constexpr const char* name = "winograd-4x4";
};
struct F2x2Of5x5 : Filtering<2, 5> {
  static constexpr const char* name = "winograd-5x5";
};
struct F4x4Of5x5 : Filtering<4, 5> {
  static constexpr const char* name = "winograd-4x4-of-5x5";
};

// Calls work(i) for the lines of a square, of which some stay in registers if there are few.
template <int lines, typename Work>
[[gnu::always_inline]] inline void for_each_line(Work&& work) {
  if constexpr (lines <= 6) {
#pragma GCC unroll 6
    for (int i = 0; i < lines; ++i) work(i);
  } else {
#pragma GCC unroll 1
    for (int i = 0; i < lines; ++i) work(i);
  }
}

// X s X^T of a square s of from x from vectors, where `line` is X applied to a line: get(row, column) reads
// s, put(row, column, vector) writes the result.
template <int from, int to, Line<to> (*line)(const Line<from>&), typename Get, typename Put>
[[gnu::always_inline]] inline void transform(Get&& get, Put&& put) {
  Line<from> rows[to];
  for_each_line<from>([&](int j) __attribute__((always_inline)) {
    Line<from> column;
#pragma GCC unroll 8
    for (int i = 0; i < from; ++i) column[i] = get(i, j);
    const Line<to> result = line(column);
#pragma GCC unroll 8
    for (int i = 0; i < to; ++i) rows[i][j] = result[i];
  });
  for_each_line<to>([&](int i) __attribute__((always_inline)) {
    const Line<to> result = line(rows[i]);
#pragma GCC unroll 8
    for (int j = 0; j < to; ++j) put(i, j, result[j]);
  });
}

}  // namespace cortado::winograd
