#pragma once

#include "cortado/kernels/lowering/microkernel.h"

namespace cortado::winograd {

// Winograd's minimal filtering F(m x m, r x r), Lavin and Gray 2016, section 4. A tile y of m x m windows of
// the (m + r - 1) x (m + r - 1) image positions d with the filter g is
//
//   y = A^T [(G g G^T) . (B^T d B)] A        (. is the product element by element)
//
// and, being bilinear, has the gradient dg = G^T [(A dy A^T) . (B^T d B)] G.
//
// A type for each m and r holds its matrices as the transforms of a line of vectors, and what it is called.
// The elements of the middle are numbered row by row.
using lowering::Vector;

template <int length>
struct Line {
  Vector at[length];
  Vector& operator[](int i) { return at[i]; }
  const Vector& operator[](int i) const { return at[i]; }
};

// F(2x2, 3x3), section 4.1.
//
//         |1  0 -1  0|        | 1    0    0 |
//   B^T = |0  1  1  0|    G = |1/2  1/2  1/2|    A^T = |1  1  1  0|
//         |0 -1  1  0|        |1/2 -1/2  1/2|          |0  1 -1 -1|
//         |0  1  0 -1|        | 0    0    1 |
//
// 2.25 times fewer multiplications than the sum over the windows. Nothing but additions and halves: sums of
// small integers stay exact, and errors are those of sums in float32.
struct F2x2 {
  static constexpr const char* name = "winograd";
  static constexpr int windows = 2, taps = 3, span = 4, positions = span * span;

  // B^T d.
  [[gnu::always_inline]] static Line<4> image(const Line<4>& d) {
    return {{d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]}};
  }
  // G g.
  [[gnu::always_inline]] static Line<4> filter(const Line<3>& g) {
    const Vector even = 0.5f * (g[0] + g[2]), odd = 0.5f * g[1];
    return {{g[0], even + odd, even - odd, g[2]}};
  }
  // A^T m.
  [[gnu::always_inline]] static Line<2> finish_windows(const Line<4>& m) {
    return {{m[0] + (m[1] + m[2]), (m[1] - m[2]) - m[3]}};
  }
  // A dy.
  [[gnu::always_inline]] static Line<4> gradient(const Line<2>& y) {
    return {{y[0], y[0] + y[1], y[0] - y[1], -y[1]}};
  }
  // G^T m.
  [[gnu::always_inline]] static Line<3> finish_filter(const Line<4>& m) {
    const Vector sum = 0.5f * (m[1] + m[2]);
    return {{m[0] + sum, 0.5f * (m[1] - m[2]), sum + m[3]}};
  }
};

// F(4x4, 3x3), section 4.3.
//
//         |4  0 -5  0  1  0|        | 1/4    0     0 |
//         |0 -4 -4  1  1  0|        |-1/6  -1/6  -1/6|           |1  1  1  1  1  0|
//   B^T = |0  4 -4 -1  1  0|    G = |-1/6   1/6  -1/6|    A^T =  |0  1 -1  2 -2  0|
//         |0 -2 -1  2  1  0|        |1/24  1/12   1/6|           |0  1  1  4  4  0|
//         |0  2 -1 -2  1  0|        |1/24 -1/12   1/6|           |0  1 -1  8 -8  1|
//         |0  4  0 -5  0  1|        |  0     0     1 |
//
// 4 times fewer multiplications. The matrices magnify the rounding of the transforms: errors are about ten
// times those of sums in float32 (docs/explanation/winograd.md has what is measured and tested).
struct F4x4 {
  static constexpr const char* name = "winograd-4x4";
  static constexpr int windows = 4, taps = 3, span = 6, positions = span * span;

  // B^T d.
  [[gnu::always_inline]] static Line<6> image(const Line<6>& d) {
    const Vector even = d[4] - 4.0f * d[2], odd = d[3] - 4.0f * d[1];
    const Vector far_even = d[4] - d[2], far_odd = d[3] - d[1];
    return {{4.0f * (d[0] - d[2]) + far_even, even + odd, even - odd, far_even + 2.0f * far_odd,
             far_even - 2.0f * far_odd, (d[5] - d[3]) - 4.0f * far_odd}};
  }
  // G g.
  [[gnu::always_inline]] static Line<6> filter(const Line<3>& g) {
    constexpr float sixth = 1.0f / 6, twelfth = 1.0f / 12, part = 1.0f / 24;
    const Vector even = -sixth * (g[0] + g[2]), odd = -sixth * g[1];
    const Vector far_even = part * g[0] + sixth * g[2], far_odd = twelfth * g[1];
    return {{0.25f * g[0], even + odd, even - odd, far_even + far_odd, far_even - far_odd, g[2]}};
  }
  // A^T m.
  [[gnu::always_inline]] static Line<4> finish_windows(const Line<6>& m) {
    const Vector even = m[1] + m[2], odd = m[1] - m[2], far_even = m[3] + m[4], far_odd = m[3] - m[4];
    return {
        {m[0] + even + far_even, odd + 2.0f * far_odd, even + 4.0f * far_even, odd + 8.0f * far_odd + m[5]}};
  }
  // A dy.
  [[gnu::always_inline]] static Line<6> gradient(const Line<4>& y) {
    const Vector even = y[0] + y[2], odd = y[1] + y[3];
    const Vector far_even = y[0] + 4.0f * y[2], far_odd = y[1] + 4.0f * y[3];
    return {{y[0], even + odd, even - odd, far_even + 2.0f * far_odd, far_even - 2.0f * far_odd, y[3]}};
  }
  // G^T m.
  [[gnu::always_inline]] static Line<3> finish_filter(const Line<6>& m) {
    constexpr float sixth = 1.0f / 6, twelfth = 1.0f / 12, part = 1.0f / 24;
    const Vector even = sixth * (m[1] + m[2]), odd = sixth * (m[1] - m[2]);
    const Vector far_even = m[3] + m[4], far_odd = m[3] - m[4];
    return {{0.25f * m[0] - even + part * far_even, twelfth * far_odd - odd, sixth * far_even - even + m[5]}};
  }
};

// F(2x2, 5x5), by the same points 0, 1, -1, 2, -2 and infinity, so with the B^T of F(4x4, 3x3).
//
//         | 1/4    0     0     0     0 |
//         |-1/6  -1/6  -1/6  -1/6  -1/6|
//     G = |-1/6   1/6  -1/6   1/6  -1/6|    A^T = |1  1  1  1  1  0|
//         |1/24  1/12   1/6   1/3   2/3|          |0  1 -1  2 -2  1|
//         |1/24 -1/12   1/6  -1/3   2/3|
//         |  0     0     0     0     1 |
//
// 2.78 times fewer multiplications; errors about those of F(4x4, 3x3).
struct F2x2Of5x5 {
  static constexpr const char* name = "winograd-5x5";
  static constexpr int windows = 2, taps = 5, span = 6, positions = span * span;

  // B^T d.
  [[gnu::always_inline]] static Line<6> image(const Line<6>& d) { return F4x4::image(d); }
  // G g.
  [[gnu::always_inline]] static Line<6> filter(const Line<5>& g) {
    constexpr float sixth = 1.0f / 6, third = 1.0f / 3, twelfth = 1.0f / 12, part = 1.0f / 24;
    const Vector even = -sixth * (g[0] + g[2] + g[4]), odd = -sixth * (g[1] + g[3]);
    const Vector far_even = part * g[0] + sixth * (g[2] + 4.0f * g[4]);
    const Vector far_odd = twelfth * g[1] + third * g[3];
    return {{0.25f * g[0], even + odd, even - odd, far_even + far_odd, far_even - far_odd, g[4]}};
  }
  // A^T m.
  [[gnu::always_inline]] static Line<2> finish_windows(const Line<6>& m) {
    return {{m[0] + (m[1] + m[2]) + (m[3] + m[4]), (m[1] - m[2]) + 2.0f * (m[3] - m[4]) + m[5]}};
  }
  // A dy.
  [[gnu::always_inline]] static Line<6> gradient(const Line<2>& y) {
    const Vector twice = 2.0f * y[1];
    return {{y[0], y[0] + y[1], y[0] - y[1], y[0] + twice, y[0] - twice, y[1]}};
  }
  // G^T m.
  [[gnu::always_inline]] static Line<5> finish_filter(const Line<6>& m) {
    constexpr float sixth = 1.0f / 6, third = 1.0f / 3, twelfth = 1.0f / 12, part = 1.0f / 24;
    const Vector even = sixth * (m[1] + m[2]), odd = sixth * (m[1] - m[2]);
    const Vector far_even = m[3] + m[4], far_odd = m[3] - m[4];
    return {{0.25f * m[0] - even + part * far_even, twelfth * far_odd - odd, sixth * far_even - even,
             third * far_odd - odd, 4.0f * sixth * far_even - even + m[5]}};
  }
};

// X s X^T of a square s of from x from vectors, where `line` is X applied to a line: get(row, column) reads
// s, put(row, column, vector) writes the result.
template <int from, int to, Line<to> (*line)(const Line<from>&), typename Get, typename Put>
[[gnu::always_inline]] inline void transform(Get&& get, Put&& put) {
  Line<from> rows[to];
#pragma GCC unroll 6
  for (int j = 0; j < from; ++j) {
    Line<from> column;
#pragma GCC unroll 6
    for (int i = 0; i < from; ++i) column[i] = get(i, j);
    const Line<to> result = line(column);
#pragma GCC unroll 6
    for (int i = 0; i < to; ++i) rows[i][j] = result[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < to; ++i) {
    const Line<to> result = line(rows[i]);
#pragma GCC unroll 6
    for (int j = 0; j < to; ++j) put(i, j, result[j]);
  }
}

}  // namespace cortado::winograd
