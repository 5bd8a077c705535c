#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "cortado/kernels/lowering/problem.h"

namespace cortado::pairs {

// Where the rows of a matrix lie in a tensor: row (sample, d, h, w), counted in that order, is the run of
// channels that begins at first + sample * stride[0] + d * stride[1] + h * stride[2] + w * stride[3].
struct Rows {
  std::array<int64_t, 4> extent;
  std::array<int64_t, 4> stride;  // in elements
  int64_t first = 0;
  int64_t channels;

  int64_t count() const { return extent[0] * extent[1] * extent[2] * extent[3]; }
  bool dense() const;  // one after the other from 0 on
  int64_t at(int64_t row) const;
};

// A pointwise convolution as matrix products: its rows are all windows.
struct PointwiseRows {
  Rows image, windows;
};
// That of a convolution of one group whose windows are single pixels of the image; else none, and the reason.
std::optional<PointwiseRows> pointwise_rows(const lowering::ConvolutionProblem& problem,
                                            std::string& refusal);

}  // namespace cortado::pairs
