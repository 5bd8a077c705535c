#pragma once

#include "cortado/kernels/lowering/microkernel.h"

namespace cortado::winograd {

// F(2x2, 3x3), Lavin and Gray 2016, section 4.1. A tile y of 2 x 2 windows of the 4 x 4 image positions d
// with the filter g is
//
//   y = A^T [(G g G^T) . (B^T d B)] A        (. is the product element by element)
//
//         |1  0 -1  0|        | 1    0    0 |
//   B^T = |0  1  1  0|    G = |1/2  1/2  1/2|    A^T = |1  1  1  0|
//         |0 -1  1  0|        |1/2 -1/2  1/2|          |0  1 -1 -1|
//         |0  1  0 -1|        | 0    0    1 |
//
// and, being bilinear, has the gradient dg = G^T [(A dy A^T) . (B^T d B)] G. Nothing but additions and
// halves: sums of small integers stay exact. Each function transforms a vector of channels; `get(row,
// column)` reads and `put` writes one element; the 16 elements of the middle are numbered row by row.
inline constexpr int positions = 16;

using lowering::Vector;

// B^T d B, d of 4 x 4.
template <typename Get, typename Put>
[[gnu::always_inline]] inline void transform_image(Get&& get, Put&& put) {
  const auto put_row = [&](int row, Vector a, Vector b, Vector c, Vector d) {
    put(4 * row, a - c);
    put(4 * row + 1, b + c);
    put(4 * row + 2, c - b);
    put(4 * row + 3, b - d);
  };
  Vector one[4], two[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) one[j] = get(1, j), two[j] = get(2, j);
  put_row(1, one[0] + two[0], one[1] + two[1], one[2] + two[2], one[3] + two[3]);
  put_row(2, two[0] - one[0], two[1] - one[1], two[2] - one[2], two[3] - one[3]);
  put_row(0, get(0, 0) - two[0], get(0, 1) - two[1], get(0, 2) - two[2], get(0, 3) - two[3]);
  put_row(3, one[0] - get(3, 0), one[1] - get(3, 1), one[2] - get(3, 2), one[3] - get(3, 3));
}

// A^T m A, m of 4 x 4, read by its number.
template <typename Get, typename Put>
[[gnu::always_inline]] inline void finish_windows(Get&& get, Put&& put) {
  Vector upper[4], lower[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const Vector one = get(4 + j), two = get(8 + j);
    upper[j] = get(j) + (one + two);
    lower[j] = (one - two) - get(12 + j);
  }
  put(0, 0, upper[0] + (upper[1] + upper[2]));
  put(0, 1, (upper[1] - upper[2]) - upper[3]);
  put(1, 0, lower[0] + (lower[1] + lower[2]));
  put(1, 1, (lower[1] - lower[2]) - lower[3]);
}

// A dy A^T, dy of 2 x 2.
template <typename Get, typename Put>
[[gnu::always_inline]] inline void transform_gradient(Get&& get, Put&& put) {
  const auto put_row = [&](int row, Vector a, Vector b) {
    put(4 * row, a);
    put(4 * row + 1, a + b);
    put(4 * row + 2, a - b);
    put(4 * row + 3, -b);
  };
  const Vector a = get(0, 0), b = get(0, 1), c = get(1, 0), d = get(1, 1);
  put_row(0, a, b);
  put_row(1, a + c, b + d);
  put_row(2, a - c, b - d);
  put_row(3, -c, -d);
}

// G g G^T, g of 3 x 3.
template <typename Get, typename Put>
[[gnu::always_inline]] inline void transform_filter(Get&& get, Put&& put) {
  const auto put_row = [&](int row, Vector a, Vector b, Vector c) {
    put(4 * row, a);
    put(4 * row + 1, 0.5f * (a + c) + 0.5f * b);
    put(4 * row + 2, 0.5f * (a + c) - 0.5f * b);
    put(4 * row + 3, c);
  };
  Vector even[3], odd[3];
  for (int j = 0; j < 3; ++j) even[j] = 0.5f * (get(0, j) + get(2, j)), odd[j] = 0.5f * get(1, j);
  put_row(0, get(0, 0), get(0, 1), get(0, 2));
  put_row(1, even[0] + odd[0], even[1] + odd[1], even[2] + odd[2]);
  put_row(2, even[0] - odd[0], even[1] - odd[1], even[2] - odd[2]);
  put_row(3, get(2, 0), get(2, 1), get(2, 2));
}

// G^T m G, m of 4 x 4, read by its number.
template <typename Get, typename Put>
[[gnu::always_inline]] inline void finish_filter(Get&& get, Put&& put) {
  Vector row[3][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const Vector sum = 0.5f * (get(4 + j) + get(8 + j));
    row[0][j] = get(j) + sum;
    row[1][j] = 0.5f * (get(4 + j) - get(8 + j));
    row[2][j] = sum + get(12 + j);
  }
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    const Vector sum = 0.5f * (row[i][1] + row[i][2]);
    put(i, 0, row[i][0] + sum);
    put(i, 1, 0.5f * (row[i][1] - row[i][2]));
    put(i, 2, sum + row[i][3]);
  }
}

}  // namespace cortado::winograd
