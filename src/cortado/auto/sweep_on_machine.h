#pragma once

#include <string>
#include <vector>

#include "cortado/machine/device_graph.h"
#include "cortado/plan/sweep.h"

namespace cortado {

// Points of more devices are not simulated unless asked for: a simulation runs the programs of all ranks.
inline constexpr int simulated_devices = 256;

// Plans for every point of the axes (plan/sweep_axes.h) and simulates those of at most `most_simulated`
// devices, by the figures of a machine that need not be here. Throws UserError.
plan::Sweep sweep_on_machine(const plan::PlanRequest& request, const DeviceGraph& machine,
                             const std::vector<std::string>& axes, int most_simulated = simulated_devices);

}  // namespace cortado
