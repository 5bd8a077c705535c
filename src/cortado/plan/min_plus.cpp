#include "cortado/plan/min_plus.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace cortado::plan {
namespace {

constexpr int64_t panel_columns = PackedMatrix::panel_columns;
constexpr int64_t lanes = panel_columns / 2;
using doubles = double __attribute__((vector_size(lanes * sizeof(double))));

inline doubles load(const double* address) {
  doubles value;
  std::memcpy(&value, address, sizeof(value));
  return value;
}
inline doubles splat(double value) { return value - doubles{}; }
inline doubles minimum(doubles a, doubles b) { return a < b ? a : b; }

// `count` rows of the product with one panel. left: rows of `depth` values.
template <int count>
void rows_by_panel(const double* left, int64_t depth, const double* panel, double* out, int64_t columns,
                   int64_t stored) {
  doubles low[count], high[count];
  for (int i = 0; i < count; ++i) low[i] = high[i] = splat(std::numeric_limits<double>::infinity());
  for (int64_t j = 0; j < depth; ++j) {
    const doubles right_low = load(panel + j * panel_columns);
    const doubles right_high = load(panel + j * panel_columns + lanes);
    for (int i = 0; i < count; ++i) {
      const doubles each = splat(left[i * depth + j]);
      low[i] = minimum(each + right_low, low[i]);
      high[i] = minimum(each + right_high, high[i]);
    }
  }
  for (int i = 0; i < count; ++i) {
    double row[panel_columns];
    std::memcpy(row, &low[i], sizeof(doubles));
    std::memcpy(row + lanes, &high[i], sizeof(doubles));
    std::copy_n(row, stored, out + i * columns);
  }
}

}  // namespace

PackedMatrix::PackedMatrix(int64_t rows, int64_t columns)
    : rows_(rows),
      columns_(columns),
      values_(
          std::make_unique_for_overwrite<double[]>(static_cast<size_t>(rows * panels() * panel_columns))) {}

void PackedMatrix::clear_panel(int64_t index) { std::fill_n(panel(index), rows_ * panel_columns, 0.0); }

void PackedMatrix::set_panel(int64_t index, const double* matrix, int64_t stride) {
  const int64_t first = index * panel_columns, count = std::min(panel_columns, columns_ - first);
  if (count < panel_columns) {
    clear_panel(index);
    return add_panel(index, matrix, stride);
  }
  double* to = panel(index);
  for (int64_t j = 0; j < rows_; ++j)
    std::memcpy(to + j * panel_columns, matrix + j * stride + first, panel_columns * sizeof(double));
}

void PackedMatrix::add_panel(int64_t index, const double* matrix, int64_t stride) {
  const int64_t first = index * panel_columns, count = std::min(panel_columns, columns_ - first);
  double* to = panel(index);
  for (int64_t j = 0; j < rows_; ++j)
    for (int64_t k = 0; k < count; ++k) to[j * panel_columns + k] += matrix[j * stride + first + k];
}

void min_plus(const double* left, int64_t rows, const PackedMatrix& right, double* out) {
  const int64_t depth = right.rows(), columns = right.columns();
  for (int64_t p = 0; p < right.panels(); ++p) {
    const int64_t first = p * panel_columns, stored = std::min(panel_columns, columns - first);
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4)
      rows_by_panel<4>(left + i * depth, depth, right.panel(p), out + i * columns + first, columns, stored);
    for (; i < rows; ++i)
      rows_by_panel<1>(left + i * depth, depth, right.panel(p), out + i * columns + first, columns, stored);
  }
}

}  // namespace cortado::plan
