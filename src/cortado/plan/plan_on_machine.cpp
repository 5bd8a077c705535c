#include "cortado/plan/plan_on_machine.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/cost/analytic.h"
#include "cortado/plan/remedy.h"
#include "cortado/plan/repeated.h"

namespace cortado::plan {
namespace {

constexpr int all_are_priced = 256;  // devices up to which no net has too many candidates
constexpr int part_planned = 128;    // devices: seconds, not minutes

// How many parts of at most so many devices a machine has, with whole samples each; 1: none such.
int equal_parts(int devices, int64_t batch) {
  for (int parts = 2; parts <= devices; ++parts)
    if (devices % parts == 0 && batch % parts == 0 && devices / parts <= part_planned) return parts;
  return 1;
}

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

PricingOptions pricing_of(const PlanRequest& request, const DeviceGraph& machine, int64_t batch) {
  PricingOptions pricing = pricing_for(machine, request.dimensions, request.history);
  const int parts = machine.devices() <= all_are_priced ? 1 : equal_parts(machine.devices(), batch);
  if (parts == 1 || !pricing.weights.empty()) return pricing;
  const DeviceGraph part = machine.first(machine.devices() / parts);
  AnalyticCosts costs(part);
  const Network network = request.with_batch(batch / parts);
  const Plan plan = make_plan(network, pricing_for(part, request.dimensions, request.history), costs,
                              part.node_of_devices());
  pricing.good.push_back(repeated(plan.strategy, parts));
  return pricing;
}

Plan plan_on_machine(const PlanRequest& request, const DeviceGraph& whole, int devices) {
  const DeviceGraph machine = whole.first(devices);
  AnalyticCosts costs(machine);
  try {
    return make_plan(request.network, pricing_of(request, machine, request.batch), costs,
                     machine.node_of_devices(), request.options);
  } catch (const NothingFits& error) {
    const Remedy remedy = remedy_for(request, whole, devices);
    throw UserError(fmt::format("net '{}' on {} {} of machine '{}': {}; {}", request.network.name(), devices,
                                devices == 1 ? "device" : "devices", whole.machine().name, error.what(),
                                text_of(remedy, whole.devices())));
  }
}

}  // namespace cortado::plan
