#include "cortado/base/spoken_order.h"

#include <algorithm>

namespace cortado {
namespace {

// A matrix of rows times columns, for each sample, becomes its transposed one.
void transpose(int64_t samples, int64_t rows, int64_t columns, const float* from, float* to) {
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column)
        to[column * rows + row] = from[row * columns + column];
    }
    from += rows * columns;
    to += rows * columns;
  }
}

}  // namespace

void to_spoken(const Shape& shape, const float* memory, float* spoken) {
  if (shape.rank() <= 2) return void(std::copy_n(memory, shape.size(), spoken));
  transpose(shape[0], shape.spatial_size(), shape[1], memory, spoken);
}

void from_spoken(const Shape& shape, const float* spoken, float* memory) {
  if (shape.rank() <= 2) return void(std::copy_n(spoken, shape.size(), memory));
  transpose(shape[0], shape[1], shape.spatial_size(), spoken, memory);
}

}  // namespace cortado
