#include "cortado/layers/filler.h"

#include <algorithm>
#include <cmath>

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

template <typename Draw>
void fill_each(int64_t count, float* values, Draw&& draw) {
  parallel_for(count, [&](int64_t i) { values[i] = static_cast<float>(draw(i)); });
}

// Interpolation weights for a deconvolution that enlarges by ceil(width / 2).
void fill_bilinear(const Shape& shape, float* values) {
  if (shape.rank() != 4 || shape[2] != shape[3]) {
    throw UserError("the bilinear filler needs a 4-D weight with a square kernel, has " + shape.text());
  }
  int64_t width = shape[3];
  double factor = std::ceil(width / 2.0), centre = (2 * factor - 1 - std::fmod(factor, 2)) / (2.0 * factor);
  fill_each(shape.size(), values, [&](int64_t i) {
    double x = i % width, y = (i / width) % width;
    return (1 - std::abs(x / factor - centre)) * (1 - std::abs(y / factor - centre));
  });
}

// Uniform in [0, 1), then each output's row scaled to sum 1.
void fill_positive_unitball(const Shape& shape, const RandomStream& stream, float* values) {
  fill_each(shape.size(), values, [&](int64_t i) { return stream.uniform(i); });
  if (shape.rank() == 0 || shape[0] == 0) return;
  int64_t row = shape.size() / shape[0];
  for (int64_t n = 0; n < shape[0]; ++n) {
    double sum = 0;
    for (int64_t i = 0; i < row; ++i) sum += values[n * row + i];
    for (int64_t i = 0; i < row; ++i) values[n * row + i] = static_cast<float>(values[n * row + i] / sum);
  }
}

void fill_gaussian(const Filler& filler, const Shape& shape, const RandomStream& stream, float* values) {
  // Sparse: each weight is kept with probability sparse / outputs.
  double keep = filler.sparse < 0 || shape.rank() == 0 ? 1 : static_cast<double>(filler.sparse) / shape[0];
  fill_each(shape.size(), values, [&](int64_t i) {
    if (keep < 1 && stream.uniform(i, 7) >= keep) return 0.0;
    return stream.normal(i, 0, filler.mean, filler.std);
  });
}

}  // namespace

void fill(const Filler& filler, const Shape& shape, const RandomStream& stream, float* values) {
  int64_t count = shape.size();
  switch (filler.type) {
    case Filler::Type::constant:
      std::fill_n(values, count, static_cast<float>(filler.value));
      return;
    case Filler::Type::uniform:
      fill_each(count, values, [&](int64_t i) { return stream.uniform(i, 0, filler.min, filler.max); });
      return;
    case Filler::Type::gaussian:
      fill_gaussian(filler, shape, stream, values);
      return;
    case Filler::Type::positive_unitball:
      fill_positive_unitball(shape, stream, values);
      return;
    case Filler::Type::xavier: {
      double bound = std::sqrt(3.0 / fan(filler, shape));
      fill_each(count, values, [&](int64_t i) { return stream.uniform(i, 0, -bound, bound); });
      return;
    }
    case Filler::Type::msra: {
      double deviation = std::sqrt(2.0 / fan(filler, shape));
      fill_each(count, values, [&](int64_t i) { return stream.normal(i, 0, 0, deviation); });
      return;
    }
    case Filler::Type::bilinear:
      fill_bilinear(shape, values);
      return;
  }
}

}  // namespace cortado
