#include "cortado/api/plan.h"

#include <cmath>

#include "cortado/api/impl/machine.h"
#include "cortado/api/impl/network.h"
#include "cortado/api/impl/plan.h"
#include "cortado/api/impl/strategy.h"
#include "cortado/plan/plan_on_machine.h"
#include "cortado/report/plan_report.h"

namespace cortado::api {
namespace {

Configuration configuration_of(const LayerStrategy& strategy) {
  const Degrees& d = strategy.config.degrees;
  Configuration configuration{.degrees = {},
                              .devices = strategy.config.devices,
                              .weights = strategy.config.weights,
                              .sync = std::string(name_of(strategy.sync))};
  for (const auto& [letter, degree] :
       {std::pair('n', d.n), {'c', d.c}, {'d', d.d}, {'h', d.h}, {'w', d.w}, {'r', d.r}})
    if (degree > 1) configuration.degrees[letter] = degree;
  return configuration;
}

std::optional<Plan::Alternative> alternative_of(const plan::Alternative& other) {
  if (std::isinf(other.adds.count)) return std::nullopt;
  return Plan::Alternative{configuration_of(other.strategy), other.adds.count};
}

}  // namespace

double Plan::seconds() const { return impl_->plan.seconds.count; }
double Plan::lower_bound_seconds() const { return impl_->plan.lower_bound.count; }
bool Plan::optimal() const { return impl_->plan.proven; }
bool Plan::limited_by_memory() const { return impl_->plan.limited; }
int64_t Plan::bytes() const { return impl_->plan.bytes.count; }
int64_t Plan::memory_bytes() const { return impl_->plan.memory.count; }

std::vector<Plan::Layer> Plan::layers() const {
  const auto name = [&](NodeIndex node) { return impl_->network.impl().network().nodes()[node].name; };
  std::vector<Layer> layers;
  for (size_t g = 0; g < impl_->plan.groups.size(); ++g) {
    const plan::PlannedGroup& group = impl_->plan.groups[g];
    Layer layer{.name = name(group.nodes.front()),
                .with = {},
                .configuration = configuration_of(group.strategy),
                .compute_seconds = compute_of(group).count,
                .sync_seconds = sync_of(group).count,
                .transfer_seconds = transfer_of(group).count,
                .bytes = group.bytes.count,
                .memory_bytes = group.memory.count,
                .runner_up = alternative_of(impl_->plan.runners_up[g]),
                .by_sample = alternative_of(impl_->plan.by_sample[g])};
    for (size_t i = 1; i < group.nodes.size(); ++i) layer.with.push_back(name(group.nodes[i]));
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<Plan::Baseline> Plan::baselines() const {
  std::vector<Baseline> baselines;
  for (const plan::Assignment& baseline : impl_->plan.baselines)
    baselines.push_back({baseline.name, baseline.seconds.count, baseline.bytes.count, baseline.memory.count,
                         impl_->plan.fits(baseline.memory)});
  return baselines;
}

std::vector<Plan::Tradeoff> Plan::frontier() const {
  std::vector<Tradeoff> points;
  for (const plan::Tradeoff& point : impl_->plan.frontier)
    points.push_back({point.seconds.count, point.memory.count, impl_->plan.fits(point.memory), point.chosen});
  return points;
}

Strategy Plan::strategy() const {
  return Strategy(std::make_shared<const Strategy::Impl>(Strategy::Impl{"plan", impl_->plan.strategy, {}}));
}

namespace {

PlanReport report_of(const Plan::Impl& impl) {
  return {impl.network.impl().network(), impl.machine, impl.plan};
}

}  // namespace

std::string Plan::text() const { return plan_text(report_of(*impl_)); }
std::string Plan::json() const { return plan_json(report_of(*impl_)); }
std::string Plan::page() const { return plan_page(report_of(*impl_)); }

Plan plan(const Network& network, const Machine& machine, const PlanOptions& options) {
  const DeviceGraph& whole = machine.impl().graph;
  const DeviceGraph used = options.devices > 0 ? whole.first(options.devices) : whole;
  const std::string dimensions = cortado::plan::checked_dimensions(options.dimensions);
  const cortado::plan::PlanOptions limits{
      .memory = options.memory_bytes > 0 ? Bytes{options.memory_bytes} : used.least_memory(),
      .frontier_points = options.frontier_points};
  const auto with_batch = [&](int64_t batch) { return network.with_batch(batch).impl().network(); };
  cortado::plan::Plan made = cortado::plan::plan_on_machine({.network = network.impl().network(),
                                                             .batch = network.batch(),
                                                             .with_batch = with_batch,
                                                             .dimensions = dimensions,
                                                             .history = options.history,
                                                             .options = limits},
                                                            whole, used.devices());
  return Plan(std::make_shared<const Plan::Impl>(Plan::Impl{network, used, std::move(made)}));
}

Plan plan(const Network& network, const Machine& machine, int devices) {
  return plan(network, machine, PlanOptions{.devices = devices});
}

}  // namespace cortado::api
