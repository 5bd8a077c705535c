#include "cortado/plan/plan_on_machine.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/cost/analytic.h"
#include "cortado/plan/remedy.h"

namespace cortado::plan {
namespace {

Remedy remedy_for(const PlanRequest& request, const DeviceGraph& whole, int devices) {
  const auto fits_with = [&](int count, int64_t batch) {
    const DeviceGraph machine = whole.first(count);
    const Network network = request.with_batch(batch);
    AnalyticCosts costs(machine);
    return fits(network, pricing_for(machine, request.dimensions, request.history), costs,
                machine.node_of_devices(), request.options.memory);
  };
  return find_remedy(fits_with, devices, whole.devices(), request.batch);
}

}  // namespace

Plan plan_on_machine(const PlanRequest& request, const DeviceGraph& whole, int devices) {
  const DeviceGraph machine = whole.first(devices);
  AnalyticCosts costs(machine);
  try {
    return make_plan(request.network, pricing_for(machine, request.dimensions, request.history), costs,
                     machine.node_of_devices(), request.options);
  } catch (const NothingFits& error) {
    const Remedy remedy = remedy_for(request, whole, devices);
    throw UserError(fmt::format("net '{}' on {} {} of machine '{}': {}; {}", request.network.name(), devices,
                                devices == 1 ? "device" : "devices", whole.machine().name, error.what(),
                                text_of(remedy, whole.devices())));
  }
}

}  // namespace cortado::plan
