#include "cortado/auto/sweep_on_machine.h"

#include "cortado/parallel/strategy.h"
#include "cortado/sim/iteration_parts.h"
#include "cortado/sim/simulated_job.h"

namespace cortado {

plan::Sweep sweep_on_machine(const plan::PlanRequest& request, const DeviceGraph& machine,
                             const std::vector<std::string>& axes, int most_simulated) {
  const auto judge = [](const Network& network, const DeviceGraph& part, const Strategy& strategy) {
    const NodeStrategies strategies = resolve(strategy, network, part.devices(), "the plan");
    const IterationParts parts =
        parts_of(simulate_job(network, strategies, strategy.schedule, AbsentMachine(part).simulated()));
    return plan::SweepParts{parts.compute, parts.exchange, parts.sync};
  };
  return plan::sweep(request, machine, plan::sweep_axes(axes, machine, request.batch),
                     {.judge = judge, .most_simulated = most_simulated});
}

}  // namespace cortado
