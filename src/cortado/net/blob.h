#pragma once

#include <vector>

#include "cortado/base/shape.h"

namespace cortado {

// A tensor in a file: row-major in its spoken shape.
struct Blob {
  Shape shape;
  std::vector<float> values;
  bool operator==(const Blob&) const = default;
};

}  // namespace cortado
