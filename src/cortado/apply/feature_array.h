#pragma once

#include <string>

#include "cortado/base/shape.h"

namespace cortado {

// A blob of all samples: the first extent is their number.
struct FeatureArray {
  std::string blob;
  Shape shape;
};

}  // namespace cortado
