#include "cortado/plan/sweep.h"

#include <algorithm>

#include "cortado/cost/analytic.h"

namespace cortado::plan {
namespace {

// Memory bounds an iteration that would be shorter by this share without its limit.
constexpr double bounding_share = 0.1;

SweepParts parts_of(const Assignment& plan) {
  SweepParts parts;
  for (const PlannedGroup& group : plan.groups) {
    parts.compute += group.compute.total() + group.update;
    parts.exchange += group.transfer + group.sums;
    parts.sync += group.sync;
  }
  return parts;
}

// One point at a time.
class Sweeper {
 public:
  Sweeper(const PlanRequest& request, const DeviceGraph& machine, const SweepAxes& axes,
          const SweepOptions& options)
      : request_(request), whole_(machine), axes_(axes), options_(options) {}

  Sweep run() {
    Sweep sweep{.net = request_.network.name(),
                .machine = whole_.machine().name,
                .link = axes_.link,
                .memory_limit = request_.options.memory,
                .points = {},
                .smallest = {}};
    for (const SweepBatch& batch : axes_.batches) {
      if (axes_.bandwidths.empty()) add_series(sweep, batch, std::nullopt);
      for (const Bandwidth& bandwidth : axes_.bandwidths) add_series(sweep, batch, bandwidth);
      sweep.smallest.push_back(smallest(batch));
    }
    return sweep;
  }

 private:
  void add_series(Sweep& sweep, const SweepBatch& batch, std::optional<Bandwidth> bandwidth) {
    DeviceGraph machine = whole_;
    if (bandwidth) {
      const double now = find_links(whole_, axes_.link, "sweep").bandwidth.bytes_per_second;
      machine = with_faster_links(whole_, axes_.link, bandwidth->bytes_per_second / now);
    }
    double of_a_device = 0;  // images per second, of the first that fits
    for (int devices : axes_.devices) {
      SweepPoint point = point_of(machine.first(devices), batch);
      point.bandwidth = bandwidth;
      if (point.fits()) {
        const double rate = point.images_per_second() / devices;
        if (of_a_device == 0) of_a_device = rate;
        point.efficiency = rate / of_a_device;
      }
      sweep.points.push_back(std::move(point));
      if (options_.done) options_.done(sweep.points.back());
    }
  }

  SweepPoint point_of(const DeviceGraph& machine, const SweepBatch& batch) const {
    SweepPoint point{.devices = machine.devices(),
                     .batch = batch,
                     .samples = batch.on(machine.devices()),
                     .price_per_hour = machine.price_per_hour()};
    const Network network = request_.with_batch(point.samples);
    try {
      const Plan plan = plan_for(network, machine, point.samples);
      point.simulated = simulates(machine);
      point.parts = judged(network, machine, plan);
      point.memory = plan.memory;
      point.proven = plan.proven;
      point.gap = plan.seconds.count / plan.lower_bound.count - 1;
      point.planned = plan.seconds;
      point.unlimited = plan.limited ? plan.unlimited : plan.seconds;
    } catch (const NothingFits& error) {
      point.needs = error.needs();
      return point;
    }
    for (const LinkClass& links : link_classes(machine)) {
      const DeviceGraph faster = with_faster_links(machine, links.name, 2);
      point.gains.push_back(
          {links, judged(network, faster, plan_for(network, faster, point.samples)).total()});
    }
    return point;
  }

  Plan plan_for(const Network& network, const DeviceGraph& machine, int64_t samples) const {
    AnalyticCosts costs(machine);
    return make_plan(network, pricing_of(request_, machine, samples), costs, machine.node_of_devices(),
                     {.memory = request_.options.memory});
  }

  bool simulates(const DeviceGraph& machine) const {
    return options_.judge && machine.devices() <= options_.most_simulated;
  }

  SweepParts judged(const Network& network, const DeviceGraph& machine, const Plan& plan) const {
    return simulates(machine) ? options_.judge(network, machine, plan.strategy) : parts_of(plan);
  }

  SmallestMachine smallest(const SweepBatch& batch) const {
    constexpr int tried_singly = 8;
    for (int devices = 1;;) {
      const DeviceGraph machine = whole_.first(devices);
      AnalyticCosts costs(machine);
      if (fits(request_.with_batch(batch.on(devices)),
               pricing_for(machine, request_.dimensions, request_.history), costs, machine.node_of_devices(),
               request_.options.memory))
        return {batch, devices, machine.price_per_hour()};
      if (devices == whole_.devices()) return {batch};
      devices = devices < tried_singly ? devices + 1 : std::min(2 * devices, whole_.devices());
    }
  }

  const PlanRequest& request_;
  const DeviceGraph& whole_;
  const SweepAxes& axes_;
  const SweepOptions& options_;
};

template <typename Value>
const SweepPoint* least(const Sweep& sweep, Value&& value) {
  const SweepPoint* best = nullptr;
  for (const SweepPoint& point : sweep.points)
    if (point.fits() && (!best || value(point) < value(*best))) best = &point;
  return best;
}

}  // namespace

std::string_view name_of(SweepBound bound) {
  constexpr std::string_view names[] = {"computing", "transfers", "gradient sums", "memory"};
  return names[static_cast<size_t>(bound)];
}

double SweepPoint::price_per_million() const {
  constexpr double seconds_per_hour = 3600, million = 1e6;
  return fits() ? price_per_hour / seconds_per_hour / images_per_second() * million : 0;
}

SweepBound SweepPoint::bound() const {
  if (!fits() || unlimited.count < (1 - bounding_share) * planned.count) return SweepBound::memory;
  const Seconds most = std::max({parts.compute, parts.exchange, parts.sync});
  return most == parts.compute ? SweepBound::compute
         : most == parts.sync  ? SweepBound::sync
                               : SweepBound::exchange;
}

const LinkGain* SweepPoint::best_gain() const {
  const auto best = std::ranges::min_element(gains, {}, &LinkGain::seconds);
  return best == gains.end() ? nullptr : &*best;
}

bool Sweep::priced() const {
  return std::ranges::any_of(points, [](const SweepPoint& point) { return point.price_per_hour > 0; });
}

Sweep sweep(const PlanRequest& request, const DeviceGraph& machine, const SweepAxes& axes,
            const SweepOptions& options) {
  return Sweeper(request, machine, axes, options).run();
}

const SweepPoint* fastest(const Sweep& sweep) {
  return least(sweep, [](const SweepPoint& point) { return -point.images_per_second(); });
}

const SweepPoint* cheapest(const Sweep& sweep) {
  const SweepPoint* best = nullptr;
  for (const SweepPoint& point : sweep.points)
    if (point.fits() && point.price_per_hour > 0 &&
        (!best || point.price_per_million() < best->price_per_million()))
      best = &point;
  return best;
}

}  // namespace cortado::plan
