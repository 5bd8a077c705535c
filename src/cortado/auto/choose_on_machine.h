#pragma once

#include <string>

#include "cortado/machine/device_graph.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// A strategy for a machine that need not be present.
struct ChosenOnMachine {
  Strategy strategy;
  std::string misfit;  // why `auto` was planned without the limit of memory; empty: it was not
};

// Returns the strategy of that name or file. `auto` is planned by the machine's figures and chosen by
// simulation.
ChosenOnMachine choose_on_machine(const std::string& name, const Network& network,
                                  const DeviceGraph& machine);

}  // namespace cortado
