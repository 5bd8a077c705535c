#pragma once

#include "cortado/api/plan.h"
#include "cortado/machine/device_graph.h"
#include "cortado/plan/planner.h"

namespace cortado::api {

struct Plan::Impl {
  Network network;
  DeviceGraph machine;  // the devices that are planned for
  plan::Plan plan;
};

}  // namespace cortado::api
