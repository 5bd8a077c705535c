#include "cortado/report/advice.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "cortado/plan/choice.h"

namespace cortado {
namespace {

using plan::Assignment;
using plan::Plan;

bool possible(const Assignment& baseline) { return std::isfinite(baseline.seconds.count); }

// True for a built-in strategy that the net allows and that fits in memory.
bool usable(const Plan& plan, const Assignment& baseline) {
  return baseline.name != "best-of-each" && !is_opponent(baseline.name) && possible(baseline) &&
         plan.fits(baseline.memory);
}

// Returns the fastest of the built-in strategies; null: none is usable.
const Assignment* best_built_in(const Plan& plan) {
  const Assignment* best = nullptr;
  for (const Assignment& baseline : plan.baselines)
    if (usable(plan, baseline) && (!best || baseline.seconds < best->seconds)) best = &baseline;
  return best;
}

const Assignment* named(const Plan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.baselines, name, &Assignment::name);
  return found == plan.baselines.end() ? nullptr : &*found;
}

bool as_fast(const Plan& plan, const Assignment* baseline) {
  return baseline && usable(plan, *baseline) && baseline->seconds.count <= about_as_fast * plan.seconds.count;
}

// "8 % faster than", "2.3 times as fast as"
std::string faster_than(double times) {
  if (times < about_as_fast) return "as fast as";
  return times < 2 ? fmt::format("{:.0f} % faster than", 100 * (times - 1))
                   : fmt::format("{:.1f} times as fast as", times);
}

std::string beside_samples(const Plan& plan, Seconds seconds) {
  const Assignment* data = named(plan, "data");
  if (!data || !possible(*data)) return "cutting by samples alone is impossible for this net and batch";
  if (!plan.fits(data->memory)) return "cutting by samples alone does not fit in the devices' memory";
  return faster_than(data->seconds.count / seconds.count) + " cutting by samples alone";
}

// Advises a way to train that is `times` times as fast as the one it would replace.
std::string advice_to_take(int devices, const std::string& strategy, double times, const std::string& why) {
  const bool clear = times >= plan::clearly_less;
  return fmt::format("{} --ranks {} --strategy {}: {}{}.", clear ? "Train with" : "Try", devices, strategy,
                     why, clear ? "" : "; costs are true to a tenth at best, so time both");
}

// Advises the plan itself: no built-in strategy is as fast.
std::string own_advice(const Plan& plan, int devices, const std::string& file, const Assignment* best) {
  const double times = best ? best->seconds.count / plan.seconds.count : plan::clearly_less;
  std::string why = beside_samples(plan, plan.seconds);
  if (best && best->name != "data")
    why += fmt::format(", {} --strategy {}, the best of those with a name", faster_than(times), best->name);
  return advice_to_take(devices, file.empty() ? "FILE, the file that --out FILE writes" : file, times, why);
}

// What the ranks do in the iteration that is drawn, as shares of it.
struct Shares {
  int ranks = 0, idle = 0, busiest = 0;
  double most = 0;                                           // that a rank computes
  double computing = 0, exposed = 0, waiting = 0, rest = 0;  // of the mean of the ranks
};

Shares shares_of(const RunReport& report) {
  const double step = report.drawn ? report.drawn->step.count : report.step.count;
  std::map<int, std::vector<TraceSlice>> ranks;
  for (const TraceSlice& slice : report.slices) ranks[slice.rank].push_back(slice);
  Shares work{.ranks = static_cast<int>(ranks.size())};
  for (const auto& [rank, slices] : ranks) {
    const RunTotals totals = totals_of(slices);
    const double computing = totals.compute.count / step, of_mean = 1.0 / work.ranks;
    work.idle += computing < idle_share ? 1 : 0;
    if (computing > work.most) work.most = computing, work.busiest = rank;
    work.computing += of_mean * computing;
    work.exposed += of_mean * totals.exposed.count / step;
    work.waiting += of_mean * totals.data_wait.count / step;
  }
  work.rest = std::max(0.0, 1 - work.computing - work.exposed - work.waiting);
  // A simulated rank computes or waits for others.
  if (report.simulated) work.exposed += std::exchange(work.rest, 0);
  return work;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

}  // namespace

std::string plan_advice(const Plan& plan, int devices, const std::string& strategy_file) {
  if (devices == 1)
    return "Train without --strategy: on one device nothing is cut; a plan for more tells what they would "
           "gain.";
  if (as_fast(plan, named(plan, "single")))
    return fmt::format("Train on one device: {} gain next to nothing with this net and batch.", devices);
  if (as_fast(plan, named(plan, "data")))
    return fmt::format(
        "Train with --ranks {} --strategy data: cutting by samples alone is as fast as this plan.", devices);
  const Assignment* best = best_built_in(plan);
  if (!as_fast(plan, best)) return own_advice(plan, devices, strategy_file, best);
  const Assignment* data = named(plan, "data");
  const double times =
      data && usable(plan, *data) ? data->seconds.count / best->seconds.count : plan::clearly_less;
  return advice_to_take(devices, best->name, times,
                        beside_samples(plan, best->seconds) + ", and as fast as this plan");
}

std::string run_advice(const RunReport& report) {
  const Shares work = shares_of(report);
  const char* iteration = report.simulated ? "the iteration" : "the iteration drawn below";
  if (work.idle > 0 && work.idle < work.ranks)
    return fmt::format("Use fewer ranks: {} of {} compute next to nothing in {}.", work.idle, work.ranks,
                       iteration);
  const double unequal = work.most - work.computing;
  if (unequal >= unequal_share && unequal >= work.exposed / 2)
    return fmt::format(
        "Rank {} computes for {} of {}, the ranks for {} on average: a strategy that shares the work more "
        "evenly may help, a faster network hardly.",
        work.busiest, percent(work.most), iteration, percent(work.computing));
  if (work.waiting >= waiting_share && work.waiting >= work.exposed)
    return fmt::format(
        "Waiting for batches takes {} of {}, though they lie in memory: this net computes little for its "
        "data, and more ranks, which share the copying, help.",
        percent(work.waiting), iteration);
  if (work.exposed >= waiting_share)
    return fmt::format(
        "Communication that nothing hides takes {} of {}: a faster network or another strategy helps.",
        percent(work.exposed), iteration);
  if (work.rest >= between_share)
    return fmt::format(
        "{} of {} lies between its steps, neither computing nor waiting: steps are short, and a larger batch "
        "helps.",
        percent(work.rest), iteration);
  const char* network = work.ranks == 1               ? " help"
                        : work.exposed < slight_share ? " help, a faster network does not"
                                                      : " help, a faster network little";
  return fmt::format("Computing takes {} of {}: faster or more devices{}.", percent(work.computing),
                     iteration, network);
}

}  // namespace cortado
