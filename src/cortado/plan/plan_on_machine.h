#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cortado/machine/device_graph.h"
#include "cortado/plan/planner.h"

namespace cortado::plan {

// A network to plan for a machine that need not be present.
struct PlanRequest {
  const Network& network;
  int64_t batch = 0;                                 // its samples of an iteration
  std::function<Network(int64_t batch)> with_batch;  // the same net with another batch size
  std::string_view dimensions = all_dimensions;      // along which layers may be cut
  int history = 1;                                   // tensors of a parameter's size that the solver keeps
  PlanOptions options{};
};

// pricing_for() a whole machine. Where it is large, all candidates would be too many. Then those of the
// cheapest plan for a part of it, with as large a part of the batch, are kept: repeated() they are good.
PricingOptions pricing_of(const PlanRequest& request, const DeviceGraph& machine, int64_t batch);

// Plans for the first `devices` of a machine, by its figures. Throws UserError where nothing fits, with the
// number of devices and the batch size that would, found by planning again; and as make_plan does.
Plan plan_on_machine(const PlanRequest& request, const DeviceGraph& machine, int devices);

}  // namespace cortado::plan
