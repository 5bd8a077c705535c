#pragma once

#include <string>

#include "cortado/api/simulation.h"
#include "cortado/machine/device_graph.h"
#include "cortado/report/time_report.h"
#include "cortado/report/trace.h"
#include "cortado/sim/simulated_job.h"

namespace cortado::api {

struct Simulation::Impl {
  Network network;
  DeviceGraph machine;
  SimulatedJob job;
  std::vector<TraceSlice> slices;  // of all devices
  TimeReport times;                // layers are those of device 0
};

}  // namespace cortado::api
