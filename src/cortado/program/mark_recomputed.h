#pragma once

#include "cortado/program/placement.h"

namespace cortado {

// Sets Operation::recomputed of what the strategies ask for, as far as it can be: outputs that are losses,
// that are reported, or that whole gradients of replicas are computed from are kept. What one kernel might
// run together with an operation that is recomputed is recomputed with it, and so is what only moves its
// outputs.
void mark_recomputed(Placement& placement);

}  // namespace cortado
