#include "cortado/auto/choose_on_machine.h"

#include "cortado/plan/choice.h"
#include "cortado/sim/simulated_job.h"

namespace cortado {

ChosenOnMachine choose_on_machine(const std::string& name, const Network& network,
                                  const DeviceGraph& machine) {
  if (name != "auto") return {load_strategy(name, network, machine.devices()), ""};
  AbsentMachine absent(machine);
  plan::Choice choice =
      plan::choose(network, plan::pricing_for(machine), absent.costs(), machine.node_of_devices(),
                   machine.least_memory(), simulated_seconds(network, absent.simulated()));
  return {std::move(choice.candidates[0].strategy), std::move(choice.misfit)};
}

}  // namespace cortado
