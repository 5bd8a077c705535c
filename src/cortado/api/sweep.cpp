#include "cortado/api/sweep.h"

#include "cortado/api/impl/machine.h"
#include "cortado/api/impl/network.h"
#include "cortado/auto/sweep_on_machine.h"
#include "cortado/report/sweep_report.h"

namespace cortado::api {

struct Sweep::Impl {
  cortado::plan::Sweep sweep;
};

std::vector<Sweep::Point> Sweep::points() const {
  std::vector<Point> points;
  for (const cortado::plan::SweepPoint& of : impl_->sweep.points) {
    Point& point = points.emplace_back();
    point.devices = of.devices;
    point.batch = of.samples;
    if (of.bandwidth) point.bandwidth = of.bandwidth->bytes_per_second;
    point.price_per_hour = of.price_per_hour;
    point.bound = name_of(of.bound());
    point.fits = of.fits();
    if (!point.fits) continue;
    point.seconds = of.seconds().count;
    point.simulated = of.simulated;
    point.compute_seconds = of.parts.compute.count;
    point.exchange_seconds = of.parts.exchange.count;
    point.sync_seconds = of.parts.sync.count;
    point.images_per_second = of.images_per_second();
    point.efficiency = of.efficiency;
    point.memory_bytes = of.memory.count;
    point.price_per_million_images = of.price_per_million();
    for (const cortado::plan::LinkGain& gain : of.gains)
      point.twice_as_fast.push_back({gain.links.name, gain.seconds.count});
  }
  return points;
}

std::vector<Sweep::Smallest> Sweep::smallest() const {
  std::vector<Smallest> smallest;
  for (const cortado::plan::SmallestMachine& of : impl_->sweep.smallest)
    smallest.push_back({of.batch.samples, of.batch.per_device, of.devices, of.price_per_hour});
  return smallest;
}

std::string Sweep::text() const { return sweep_text({impl_->sweep}); }
std::string Sweep::csv() const { return sweep_csv({impl_->sweep}); }
std::string Sweep::json() const { return sweep_json({impl_->sweep}); }
std::string Sweep::page() const { return sweep_page({impl_->sweep}); }

Sweep sweep(const Network& network, const Machine& machine, const SweepOptions& options) {
  const DeviceGraph& graph = machine.impl().graph;
  const std::string dimensions = cortado::plan::checked_dimensions(options.dimensions);
  const auto with_batch = [&](int64_t batch) { return network.with_batch(batch).impl().network(); };
  const cortado::plan::PlanRequest request{
      .network = network.impl().network(),
      .batch = network.batch(),
      .with_batch = with_batch,
      .dimensions = dimensions,
      .history = options.history,
      .options = {.memory = options.memory_bytes > 0 ? Bytes{options.memory_bytes} : graph.least_memory()}};
  return Sweep(std::make_shared<const Sweep::Impl>(
      Sweep::Impl{sweep_on_machine(request, graph, options.axes, options.most_simulated)}));
}

}  // namespace cortado::api
