#pragma once

#include "cortado/base/units.h"

namespace cortado {

// Seconds of the passes of a task; 0 for those that it does not have.
struct PassTimes {
  Seconds forward, backward_weights, backward;
  Seconds total() const { return forward + backward_weights + backward; }
};

}  // namespace cortado
