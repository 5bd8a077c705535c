#include "cortado/sim/model_computing.h"

#include "cortado/cost/analytic.h"
#include "cortado/sim/step_seconds.h"

namespace cortado {

void model_computing(Compiled& compiled, const DeviceGraph& machine) {
  AnalyticCosts costs(machine);
  const std::vector<int> nodes = machine.node_of_devices();
  compiled.modelled = StepSeconds(compiled.program, costs, nodes).of_all();
}

}  // namespace cortado
