#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cortado/kernels/lowering/lattice.h"
#include "cortado/kernels/lowering/row_product.h"

namespace cortado::lowering {

// The matrix that a lattice reads from its left tensor, in memory: row (sample, point), column (tap, k) is
// element k of what the point reads at the tap, zero outside the tensor. Elements of a tap are contiguous in
// both, so that all copies and sums run over `depth` floats (times the taps along w where those are
// contiguous in the tensor too). The lattice's batch does not count: samples come with each call.
class LoweredMatrix {
 public:
  explicit LoweredMatrix(Lattice lattice);

  // The tensor itself is the matrix, its rows row_stride() apart: nothing needs to be copied.
  bool is_tensor() const { return is_tensor_; }
  int64_t rows() const;  // of a sample
  int64_t columns() const { return lattice_.taps() * lattice_.depth; }
  int64_t row_stride() const { return is_tensor_ ? lattice_.axis[2].left_stride : columns(); }
  int64_t sample_elements() const { return is_tensor_ ? 0 : rows() * columns(); }  // in memory of its own

  // matrix = what the lattice reads.
  void gather(const float* tensor, int64_t samples, float* matrix) const;

  // The adjoint: each element of the tensor is the sum of all places it is read to, begun with the bias (or
  // zero; with `add`, with what the tensor holds, and then the epilogue has no bias).
  void scatter(const float* matrix, int64_t samples, float* tensor, bool add, const Epilogue& epilogue) const;

 private:
  struct Hit {
    int64_t row, tap;
  };
  // The rows and taps of one axis that read position p are hits[begin[p]] to hits[begin[p + 1] - 1].
  struct Readers {
    std::vector<int64_t> begin;
    std::vector<Hit> hits;
  };
  static Readers readers_of(const LatticeAxis& axis);
  void gather_row(const std::vector<const float*>& lines, int64_t row, float* to) const;
  void scatter_line(const std::vector<const float*>& sources, bool add, const Epilogue& epilogue,
                    float* to) const;

  Lattice lattice_;
  std::array<Readers, 3> readers_;
  bool is_tensor_;
  bool runs_;  // taps along w are contiguous in the tensor
};

// Bias and leaky ReLU on rows of `channels`.
void apply(const Epilogue& epilogue, int64_t rows, int64_t channels, float* values);

}  // namespace cortado::lowering
