#pragma once

#include <span>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/base/shape.h"
#include "cortado/kernels/native/simd.h"

namespace cortado::native {

// Tensors joined along an axis, as they lie in memory: rows of the whole that each hold a run of every part.
class JoinedRows {
 public:
  JoinedRows(std::span<const Shape> parts, const Shape& whole, int axis);

  // Copies the parts, of elements E (kernels/kernel.h), into the whole; a null part is left out.
  template <typename E>
  void join(std::span<const float* const> parts, float* whole) const;
  // Copies the whole into its parts; a null part is left out.
  template <typename E>
  void part(const float* whole, std::span<float* const> parts) const;

 private:
  template <typename Run>
  void for_each_run(int64_t line, Run&& run) const;

  int64_t rows_ = 1;
  int64_t row_length_ = 0;
  std::vector<int64_t> lengths_, offsets_;  // of each part's run in a row
};

}  // namespace cortado::native
