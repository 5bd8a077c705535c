#pragma once

#include <vector>

#include "cortado/base/units.h"

namespace cortado::plan {

// An assignment with what it takes and holds.
struct FrontierPoint {
  std::vector<int> assignment;
  double seconds = 0;
  Bytes bytes;
};

}  // namespace cortado::plan
