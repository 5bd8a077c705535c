#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/spoken.h"
#include "cortado/layers/axes.h"

namespace cortado::reference {

// Softmax of scores along one axis, in spoken order.
template <typename T>
std::vector<double> probabilities(const Shape& scores, const AxisView& view, const T* memory) {
  Spoken<const T> x(scores, memory);
  std::vector<double> y(scores.size());
  for (int64_t line = 0; line < view.before * view.after; ++line) {
    const int64_t first = line / view.after * view.extent * view.after + line % view.after;
    const int64_t end = first + view.extent * view.after;
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = first; k < end; k += view.after) maximum = std::max<double>(maximum, x[k]);
    for (int64_t k = first; k < end; k += view.after) {
      const double score = x[k];
      sum += y[k] = carry(std::exp(score - maximum), score);
    }
    for (int64_t k = first; k < end; k += view.after) y[k] /= sum;
  }
  return y;
}

// Writes those of the classes `own`, which a device answers for.
template <typename T>
void write_probabilities(const std::vector<double>& all, const AxisView& view, Range own, Spoken<T> output) {
  int64_t k = 0;
  for (int64_t i = 0; i < view.before; ++i)
    for (int64_t c = own.begin; c < own.end; ++c)
      for (int64_t j = 0; j < view.after; ++j, ++k)
        output[k] = static_cast<T>(all[(i * view.extent + c) * view.after + j]);
}

}  // namespace cortado::reference
