#pragma once

#include <vector>

#include "cortado/cost/cost_model.h"
#include "cortado/parallel/strategy.h"
#include "cortado/plan/pricing.h"

namespace cortado::plan {

// Seconds of an iteration by Eq. 1 under a strategy whose layers are on any devices: of a plan's own strategy
// what the plan takes. Each group (groups.h) is cut as its first layer says.
Seconds strategy_seconds(const Network& network, const Strategy& strategy, const PricingOptions& options,
                         CostModel& costs, const std::vector<int>& node_of_device);

}  // namespace cortado::plan
