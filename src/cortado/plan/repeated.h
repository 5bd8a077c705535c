#pragma once

#include "cortado/parallel/strategy.h"

namespace cortado::plan {

// The strategy for `times` as many devices and samples: each layer is cut that many times further by sample,
// so that every block of devices does what the first one did. All layers are on first devices, in order.
Strategy repeated(Strategy strategy, int times);

}  // namespace cortado::plan
