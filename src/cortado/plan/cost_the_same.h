#pragma once

#include "cortado/plan/groups.h"

namespace cortado::plan {

// Whether two groups cost the same under any configuration: the same layers with the same options on tensors
// of the same shapes and types, the same gradients wanted. Nets repeat their modules.
bool cost_the_same(const Network& network, const Group& a, const Group& b);

}  // namespace cortado::plan
