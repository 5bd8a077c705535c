#pragma once

#include "cortado/net/network.h"
#include "cortado/sim/simulated_job.h"

namespace cortado {

// What no strategy's iteration takes less than, whatever its cuts and wherever its layers lie, by a machine's
// figures (AnalyticCosts); on equal devices, of strategies with equal parts. The larger of
//   the work   all computing and updates as one device does them, shared evenly by all devices. Cutting a
//              layer only adds to it: overheads of more tasks, weights and halos that several read
//   the path   of layers that wait for each other, there and back, from one with weights to the loss: the
//              smallest part that as many devices can make of each
// Messages take no time in it.
Seconds least_iteration(const Network& network, const SimulatedMachine& machine);

}  // namespace cortado
