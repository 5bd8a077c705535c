#include "cortado/kernels/lowering/lowered_matrix.h"

#include <algorithm>
#include <utility>

#include "cortado/base/parallel_for.h"

namespace cortado::lowering {

namespace {

int64_t taps_of(const LatticeAxis& axis) { return std::ssize(axis.offset); }

bool reads_each_once(const LatticeAxis& axis) {
  return axis.step == 1 && taps_of(axis) == 1 && axis.offset[0] == 0 && axis.rows == axis.extent;
}

bool consecutive(const std::vector<int64_t>& offset) {
  for (size_t i = 1; i < offset.size(); ++i)
    if (offset[i] != offset[i - 1] + 1) return false;
  return true;
}

void rectify(int64_t count, float slope, float* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = values[i] < 0 ? slope * values[i] : values[i];
}

}  // namespace

LoweredMatrix::LoweredMatrix(Lattice lattice) : lattice_(std::move(lattice)) {
  const auto& axis = lattice_.axis;
  is_tensor_ = std::ranges::all_of(axis, reads_each_once);
  runs_ = consecutive(axis[2].offset) && axis[2].left_stride == lattice_.depth;
  for (int i = 0; i < 3; ++i) readers_[i] = readers_of(axis[i]);
}

int64_t LoweredMatrix::rows() const {
  return lattice_.axis[0].rows * lattice_.axis[1].rows * lattice_.axis[2].rows;
}

LoweredMatrix::Readers LoweredMatrix::readers_of(const LatticeAxis& axis) {
  Readers readers;
  for (int64_t position = 0; position < axis.extent; ++position) {
    readers.begin.push_back(std::ssize(readers.hits));
    for (int64_t tap = 0; tap < taps_of(axis); ++tap) {
      const int64_t distance = position - axis.offset[tap];
      if (distance % axis.step != 0 || distance < 0 || distance / axis.step >= axis.rows) continue;
      readers.hits.push_back({distance / axis.step, tap});
    }
  }
  readers.begin.push_back(std::ssize(readers.hits));
  return readers;
}

// One row of the matrix from the lines of the tensor that its taps along d and h read; null outside.
void LoweredMatrix::gather_row(const std::vector<const float*>& lines, int64_t row, float* to) const {
  const LatticeAxis& w = lattice_.axis[2];
  const int64_t taps = taps_of(w), depth = lattice_.depth, start = row * w.step;
  // Taps [first, last) of a run lie inside.
  const int64_t position = start + w.offset[0];
  const int64_t first = std::clamp<int64_t>(-position, 0, taps);
  const int64_t last = std::clamp<int64_t>(w.extent - position, first, taps);
  for (const float* line : lines) {
    if (!line) {
      to = std::fill_n(to, taps * depth, 0.0f);
    } else if (runs_) {
      to = std::fill_n(to, first * depth, 0.0f);
      to = std::copy_n(line + (position + first) * depth, (last - first) * depth, to);
      to = std::fill_n(to, (taps - last) * depth, 0.0f);
    } else {
      for (int64_t offset : w.offset) {
        const int64_t at = start + offset;
        const bool inside = at >= 0 && at < w.extent;
        to = inside ? std::copy_n(line + at * w.left_stride, depth, to) : std::fill_n(to, depth, 0.0f);
      }
    }
  }
}

void LoweredMatrix::gather(const float* tensor, int64_t samples, float* matrix) const {
  const auto& [d, h, w] = lattice_.axis;
  const int64_t columns = this->columns();
  parallel_ranges(samples * d.rows * h.rows, [&, &d = d, &h = h, &w = w](int64_t begin, int64_t end) {
    std::vector<const float*> lines;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t n = line / h.rows / d.rows, rd = line / h.rows % d.rows, rh = line % h.rows;
      lines.clear();
      for (int64_t od : d.offset)
        for (int64_t oh : h.offset) {
          const int64_t pd = rd * d.step + od, ph = rh * h.step + oh;
          const bool inside = pd >= 0 && pd < d.extent && ph >= 0 && ph < h.extent && w.extent > 0;
          lines.push_back(inside ? tensor + n * lattice_.left_batch_stride + pd * d.left_stride +
                                       ph * h.left_stride
                                 : nullptr);
        }
      for (int64_t row = 0; row < w.rows; ++row)
        gather_row(lines, row, matrix + (line * w.rows + row) * columns);
    }
  });
}

// One line of the tensor; a source is row 0 of a line of the matrix, at the line's tap along d and h.
void LoweredMatrix::scatter_line(const std::vector<const float*>& sources, bool add, const Epilogue& epilogue,
                                 float* to) const {
  const LatticeAxis& w = lattice_.axis[2];
  const Readers& readers = readers_[2];
  const int64_t depth = lattice_.depth, columns = this->columns();
  for (int64_t position = 0; position < w.extent; ++position) {
    float* __restrict sum = to + position * w.left_stride;
    if (epilogue.bias) {
      std::copy_n(epilogue.bias, depth, sum);
    } else if (!add) {
      std::fill_n(sum, depth, 0.0f);
    }
    for (int64_t i = readers.begin[position]; i < readers.begin[position + 1]; ++i) {
      const int64_t from = readers.hits[i].row * columns + readers.hits[i].tap * depth;
      for (const float* source : sources) {
        const float* __restrict addend = source + from;
        for (int64_t k = 0; k < depth; ++k) sum[k] += addend[k];
      }
    }
    if (epilogue.rectify) rectify(depth, epilogue.slope, sum);
  }
}

void LoweredMatrix::scatter(const float* matrix, int64_t samples, float* tensor, bool add,
                            const Epilogue& epilogue) const {
  const auto& [d, h, w] = lattice_.axis;
  const int64_t row_columns = columns(), line_taps = taps_of(w) * lattice_.depth;
  parallel_ranges(samples * d.extent * h.extent, [&, &d = d, &h = h, &w = w](int64_t begin, int64_t end) {
    std::vector<const float*> sources;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t n = line / h.extent / d.extent, pd = line / h.extent % d.extent, ph = line % h.extent;
      sources.clear();
      for (int64_t i = readers_[0].begin[pd]; i < readers_[0].begin[pd + 1]; ++i)
        for (int64_t j = readers_[1].begin[ph]; j < readers_[1].begin[ph + 1]; ++j) {
          const Hit &plane = readers_[0].hits[i], &in_plane = readers_[1].hits[j];
          sources.push_back(matrix +
                            ((n * d.rows + plane.row) * h.rows + in_plane.row) * w.rows * row_columns +
                            (plane.tap * taps_of(h) + in_plane.tap) * line_taps);
        }
      scatter_line(sources, add, epilogue,
                   tensor + n * lattice_.left_batch_stride + pd * d.left_stride + ph * h.left_stride);
    }
  });
}

void apply(const Epilogue& epilogue, int64_t rows, int64_t channels, float* values) {
  if (!epilogue.bias && !epilogue.rectify) return;
  parallel_for(rows, [&](int64_t row) {
    float* value = values + row * channels;
    for (int64_t c = 0; epilogue.bias && c < channels; ++c) value[c] += epilogue.bias[c];
    if (epilogue.rectify) rectify(channels, epilogue.slope, value);
  });
}

}  // namespace cortado::lowering
