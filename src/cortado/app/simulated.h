#pragma once

#include <functional>
#include <vector>

#include "cortado/cost/cost_model.h"
#include "cortado/machine/device_graph.h"
#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"
#include "cortado/program/program.h"
#include "cortado/sim/simulator.h"

namespace cortado {

struct SimulatedJob {
  std::vector<Program> programs;  // of all ranks
  Simulation simulation;
};

// A job of one rank on each device of the machine. Its programs are made as for plain kernels: they are there
// for the order of steps, while times come from the cost model. Where `costs` measures, all ranks call it.
SimulatedJob simulate_job(const Network& network, const NodeStrategies& strategies, const Schedule& schedule,
                          CostModel& costs, const DeviceGraph& machine);

// What such a job judges strategies by: an iteration, simulated. All that it is given must outlive it.
std::function<Seconds(const Strategy&)> simulated_seconds(const Network& network, CostModel& costs,
                                                          const DeviceGraph& machine);

}  // namespace cortado
