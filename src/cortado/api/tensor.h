#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cortado::api {

// Extents in the order N, C, (D,) H, W; of parameters as Caffe has them.
using Shape = std::vector<int64_t>;

// Values in the row-major order of the shape: the last extent varies fastest.
struct Tensor {
  Shape shape;
  std::vector<float> values;
};

// A name and the shape that belongs to it.
struct NamedShape {
  std::string name;
  Shape shape;
};

// A number that a network puts out: one element of a tensor that no layer reads.
struct Output {
  std::string name;
  double value = 0;
  double loss_weight = 0;
};

}  // namespace cortado::api
