#include "cortado/auto/choose_on_machine.h"

#include "cortado/plan/choice.h"
#include "cortado/sim/simulated_job.h"
#include "cortado/tune/tune_on_machine.h"

namespace cortado {

ChosenOnMachine choose_on_machine(const std::string& name, const Network& network,
                                  const DeviceGraph& machine) {
  if (name != "auto") return {load_strategy(name, network, machine.devices()), ""};
  AbsentMachine absent(machine);
  plan::Choice choice =
      plan::choose(network, plan::pricing_for(machine), absent.costs(), machine.node_of_devices(),
                   machine.least_memory(), simulated_seconds(network, absent.simulated()));
  Strategy& chosen = choice.candidates[0].strategy;
  PlacedStrategy placed = place_on(absent.simulated(), network, chosen, 1, effort_of_auto);
  const bool pays = placed.before.count >= worth_changing * placed.seconds.count;
  return {std::move(pays ? placed.strategy : chosen), std::move(choice.misfit)};
}

}  // namespace cortado
