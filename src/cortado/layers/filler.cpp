#include "cortado/layers/filler.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"

namespace cortado {
namespace {

// n of xavier and msra (Glorot and Bengio 2010; He et al. 2015) as Caffe counts it.
double fan(const Filler& filler, const Shape& shape) {
  double fan_in = shape.rank() > 0 ? static_cast<double>(shape.size()) / shape[0] : 1;
  double fan_out = shape.rank() > 1 ? static_cast<double>(shape.size()) / shape[1] : shape.size();
  switch (filler.variance_norm) {
    case Filler::VarianceNorm::fan_in:
      return fan_in;
    case Filler::VarianceNorm::fan_out:
      return fan_out;
    case Filler::VarianceNorm::average:
      return (fan_in + fan_out) / 2;
  }
  return fan_in;
}

// The row-major index in `shape` of each element of a part: long runs of neighbours, one after the other.
class PartIndex {
 public:
  PartIndex(const Shape& shape, const Box& part) : size_(part.shape().size()) {
    int axis = shape.rank();  // axes from here on make one run
    while (axis > 0 && part[axis - 1] == Range{0, shape[axis - 1]}) --axis;
    if (axis > 0) --axis;
    const Shape of_part = part.shape();
    run_ = of_part.count(axis);
    const Strides strides = row_major_strides(shape);
    const int64_t runs = size_ > 0 ? of_part.count(0, axis) : 0;
    for (int64_t r = 0; r < runs; ++r) {
      int64_t begin = axis < shape.rank() ? part[axis].begin * strides[axis] : 0, rest = r;
      for (int a = axis - 1; a >= 0; rest /= of_part[a], --a)
        begin += (part[a].begin + rest % of_part[a]) * strides[a];
      begins_.push_back(begin);
    }
  }
  int64_t size() const { return size_; }
  // How many elements from i on are neighbours in the whole.
  int64_t run_from(int64_t i) const { return run_ - i % run_; }
  int64_t operator[](int64_t i) const { return begins_[static_cast<size_t>(i / run_)] + i % run_; }

 private:
  int64_t size_, run_ = 1;
  std::vector<int64_t> begins_;
};

// values[i] = draw(index of i in the whole parameter).
template <typename Draw>
void fill_each(const PartIndex& part, float* values, Draw&& draw) {
  parallel_for(part.size(), [&](int64_t i) { values[i] = static_cast<float>(draw(part[i])); });
}

// draw(index of the first in the whole parameter, count, values) for neighbours.
template <typename Draw>
void fill_runs(const PartIndex& part, float* values, Draw&& draw) {
  parallel_ranges(part.size(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin, count = 0; i < end; i += count) {
      count = std::min(end - i, part.run_from(i));
      draw(static_cast<uint64_t>(part[i]), count, values + i);
    }
  });
}

// Interpolation weights for a deconvolution that enlarges by ceil(width / 2).
void fill_bilinear(const Shape& shape, const PartIndex& part, float* values) {
  if (shape.rank() != 4 || shape[2] != shape[3]) {
    throw UserError("the bilinear filler needs a 4-D weight with a square kernel, has " + shape.text());
  }
  int64_t width = shape[3];
  double factor = std::ceil(width / 2.0), centre = (width - 1) / (2.0 * factor);
  fill_each(part, values, [&](int64_t i) {
    double x = i % width, y = (i / width) % width;
    return (1 - std::abs(x / factor - centre)) * (1 - std::abs(y / factor - centre));
  });
}

void fill_uniform(const PartIndex& part, const RandomStream& stream, double low, double high, float* values) {
  fill_runs(part, values, [&](uint64_t first, int64_t count, float* run) {
    stream.uniforms(first, count, low, high, run);
  });
}

// Uniform in [0, 1), then each output's row scaled to sum 1: the whole row, whatever part of it is here.
void fill_positive_unitball(const Shape& shape, const Box& box, const PartIndex& part,
                            const RandomStream& stream, float* values) {
  auto drawn = [&](int64_t i) { return static_cast<float>(stream.uniform(i)); };
  if (shape.rank() == 0 || part.size() == 0) return fill_each(part, values, drawn);
  const int64_t row = shape.count(1), first = box[0].begin;
  std::vector<double> sums(static_cast<size_t>(box[0].size()));
  parallel_for(box[0].size(), [&](int64_t n) {
    for (int64_t i = (first + n) * row; i < (first + n + 1) * row; ++i)
      sums[static_cast<size_t>(n)] += drawn(i);
  });
  fill_each(part, values, [&](int64_t i) { return drawn(i) / sums[static_cast<size_t>(i / row - first)]; });
}

void fill_gaussian(const Filler& filler, const Shape& shape, const PartIndex& part,
                   const RandomStream& stream, float* values) {
  // Sparse: each weight is kept with probability sparse / outputs.
  const double keep =
      filler.sparse < 0 || shape.rank() == 0 ? 1 : static_cast<double>(filler.sparse) / shape[0];
  fill_runs(part, values, [&](uint64_t first, int64_t count, float* run) {
    stream.normals(first, count, filler.mean, filler.std, run);
    if (keep >= 1) return;
    for (int64_t i = 0; i < count; ++i)
      if (stream.uniform(first + static_cast<uint64_t>(i), 7) >= keep) run[i] = 0;
  });
}

}  // namespace

void fill(const Filler& filler, const Shape& shape, const RandomStream& stream, float* values) {
  fill(filler, shape, Box::whole(shape), stream, values);
}

void fill(const Filler& filler, const Shape& shape, const Box& box, const RandomStream& stream,
          float* values) {
  const PartIndex part(shape, box);
  switch (filler.type) {
    case Filler::Type::constant:
      std::fill_n(values, part.size(), static_cast<float>(filler.value));
      return;
    case Filler::Type::uniform:
      fill_uniform(part, stream, filler.min, filler.max, values);
      return;
    case Filler::Type::gaussian:
      fill_gaussian(filler, shape, part, stream, values);
      return;
    case Filler::Type::positive_unitball:
      fill_positive_unitball(shape, box, part, stream, values);
      return;
    case Filler::Type::xavier: {
      const double bound = std::sqrt(3.0 / fan(filler, shape));
      fill_uniform(part, stream, -bound, bound, values);
      return;
    }
    case Filler::Type::msra: {
      const double deviation = std::sqrt(2.0 / fan(filler, shape));
      fill_runs(part, values, [&](uint64_t first, int64_t count, float* run) {
        stream.normals(first, count, 0, deviation, run);
      });
      return;
    }
    case Filler::Type::bilinear:
      fill_bilinear(shape, part, values);
      return;
  }
}

}  // namespace cortado
