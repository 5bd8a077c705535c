#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/report/sweep_page_parts.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using plan::Sweep;
using plan::SweepPoint;

// Below this share of an iteration a gain is none.
constexpr double slight_gain = 0.01;

double share_gained(const SweepPoint& point, const plan::LinkGain& gain) {
  return 1 - gain.seconds.count / point.seconds().count;
}

std::string in_percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

bool same_series(const SweepPoint& a, const SweepPoint& b) {
  return a.batch == b.batch && a.bandwidth == b.bandwidth;
}

// The largest point of the series whose devices give enough.
const SweepPoint& worthwhile(const Sweep& sweep, const SweepPoint& of) {
  const SweepPoint* largest = nullptr;
  for (const SweepPoint& point : sweep.points)
    if (point.fits() && same_series(point, of) && point.efficiency >= worthwhile_efficiency) largest = &point;
  return *largest;  // at least the first
}

const SweepPoint& first_of(const Sweep& sweep, const SweepPoint& of) {
  return *std::ranges::find_if(
      sweep.points, [&](const SweepPoint& point) { return point.fits() && same_series(point, of); });
}

std::string rate_text(const SweepPoint& point) {
  return short_number(point.images_per_second()) + " images a second";
}

std::string advice_by_price(const Sweep& sweep, const SweepPoint& cheapest, const SweepPoint& fastest) {
  const std::string take =
      fmt::format("Take {}: images cost least there, {} for a million, at {}", point_name(sweep, cheapest),
                  short_number(cheapest.price_per_million()), rate_text(cheapest));
  if (&cheapest == &fastest) return take + ", and nothing is faster.";
  return fmt::format("{}; the fastest, {}, reaches {} for {} a million.", take, point_name(sweep, fastest),
                     rate_text(fastest), short_number(fastest.price_per_million()));
}

std::string advice_by_speed(const Sweep& sweep, const SweepPoint& fastest) {
  const SweepPoint& taken = *taken_point(sweep);
  const SweepPoint& first = first_of(sweep, fastest);
  if (&taken == &fastest && &taken == &first)
    return fmt::format("Take {}: {}.", point_name(sweep, taken), rate_text(taken));
  const std::string take =
      fmt::format("Take {}: {}, each device {} of what one of {} gives", point_name(sweep, taken),
                  rate_text(taken), in_percent(taken.efficiency), first.devices);
  if (&taken == &fastest) return take + "; nothing is faster.";
  return fmt::format("{}; the fastest, {}, reaches {}, at {} a device.", take, point_name(sweep, fastest),
                     rate_text(fastest), in_percent(fastest.efficiency));
}

}  // namespace

const SweepPoint* taken_point(const Sweep& sweep) {
  if (const SweepPoint* cheapest = plan::cheapest(sweep)) return cheapest;
  const SweepPoint* fastest = plan::fastest(sweep);
  return fastest ? &worthwhile(sweep, *fastest) : nullptr;
}

std::string series_name(const Sweep& sweep, const SweepPoint& point) {
  std::string name = "batch " + point.batch.text();
  if (point.bandwidth)
    name +=
        fmt::format(", {} at {:g} GB/s", sweep.link, point.bandwidth->bytes_per_second / bytes_per_gigabyte);
  return name;
}

std::string point_name(const Sweep& sweep, const SweepPoint& point) {
  return fmt::format("{}, {}", counted(point.devices, "device"), series_name(sweep, point));
}

std::string bound_text(const SweepPoint& point) {
  return point.fits() ? std::string(name_of(point.bound()))
                      : "does not fit: needs " + plan::gibibytes(point.needs);
}

std::string gain_text(const SweepPoint& point) {
  const plan::LinkGain* best = point.best_gain();
  if (!best) return "";
  const double share = share_gained(point, *best);
  return share < slight_gain ? "none" : fmt::format("{} {}", best->links.name, in_percent(share));
}

std::string sweep_advice(const Sweep& sweep) {
  const SweepPoint* fastest = plan::fastest(sweep);
  if (!fastest) {
    for (const plan::SmallestMachine& smallest : sweep.smallest)
      if (smallest.devices > 0)
        return fmt::format("Take other devices than these: nothing fits in {} each. {}.",
                           plan::gibibytes(sweep.memory_limit), smallest_answer(sweep, smallest));
    return fmt::format(
        "Take another machine: the net fits on no part of this one, whose devices have {} each.",
        plan::gibibytes(sweep.memory_limit));
  }
  const SweepPoint* cheapest = plan::cheapest(sweep);
  return cheapest ? advice_by_price(sweep, *cheapest, *fastest) : advice_by_speed(sweep, *fastest);
}

std::string link_answer(const Sweep& sweep) {
  const SweepPoint* best = nullptr;
  for (const SweepPoint& point : sweep.points) {
    if (!point.fits() || point.gains.empty()) continue;
    if (!best || share_gained(point, *point.best_gain()) > share_gained(*best, *best->best_gain()))
      best = &point;
  }
  if (!best) return "";
  const double most = share_gained(*best, *best->best_gain());
  if (most < slight_gain) return "No faster link pays: none shortens an iteration by 1 % at any point";
  std::string text =
      fmt::format("The links '{}' pay most: twice as fast, they shorten an iteration by {} on {}",
                  best->best_gain()->links.name, in_percent(most), point_name(sweep, *best));
  for (const plan::LinkGain& gain : best->gains)
    if (&gain != best->best_gain())
      text +=
          fmt::format("; '{}' by {}", gain.links.name, in_percent(std::max(0.0, share_gained(*best, gain))));
  return text;
}

std::string smallest_answer(const Sweep& sweep, const plan::SmallestMachine& smallest) {
  if (smallest.devices == 0)
    return fmt::format("Batch {} fits on no part of machine {}", smallest.batch.text(), sweep.machine);
  std::string text = fmt::format("Batch {} fits on {} or more, tried up to 8 one by one, then doubled",
                                 smallest.batch.text(), counted(smallest.devices, "device"));
  if (smallest.price_per_hour > 0) text += fmt::format(": {} an hour", short_number(smallest.price_per_hour));
  return text;
}

}  // namespace cortado
