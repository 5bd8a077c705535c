#pragma once

#include "cortado/api/machine.h"
#include "cortado/machine/device_graph.h"

namespace cortado::api {

struct Machine::Impl {
  DeviceGraph graph;
};

}  // namespace cortado::api
