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

// Any strategy as rules for that machine, on which `auto` is planned. `misfit`: why that was planned without
// the limit of memory; empty: it was not.
struct ChosenStrategy {
  cortado::Strategy strategy;
  std::string misfit;
};
ChosenStrategy choose_on(const cortado::Network& network, const Strategy& strategy,
                         const DeviceGraph& machine);

}  // namespace cortado::api
