#pragma once

#include <cstdint>
#include <memory>

namespace cortado::plan {

// The right factor of min-plus products, in panels of `panel_columns` columns, each stored row after row:
// what the inner loop reads lies in one piece, and a panel of 400 rows fits the first-level cache. Missing
// columns of the last panel are never stored. Nothing is set at first.
class PackedMatrix {
 public:
#ifdef __AVX512F__
  static constexpr int64_t panel_columns = 16;
#else
  static constexpr int64_t panel_columns = 8;
#endif
  PackedMatrix(int64_t rows, int64_t columns);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t panels() const { return (columns_ + panel_columns - 1) / panel_columns; }
  double* panel(int64_t index) { return values_.get() + index * rows_ * panel_columns; }
  const double* panel(int64_t index) const { return values_.get() + index * rows_ * panel_columns; }

  // Sets, or adds to, the columns of a panel from a matrix, row-major, `stride` values from row to row.
  void set_panel(int64_t index, const double* matrix, int64_t stride);
  void add_panel(int64_t index, const double* matrix, int64_t stride);
  void clear_panel(int64_t index);

 private:
  int64_t rows_, columns_;
  std::unique_ptr<double[]> values_;
};

// out[i][k] = min over j of left[i][j] + right[j][k]; left and out are row-major and dense. This is the hot
// loop of the search: four rows and two vectors of columns stay in registers while j runs, so that a cycle
// does two additions and two minima of vectors.
void min_plus(const double* left, int64_t rows, const PackedMatrix& right, double* out);

}  // namespace cortado::plan
