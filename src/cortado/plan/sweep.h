#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cortado/plan/plan_on_machine.h"
#include "cortado/plan/sweep_axes.h"

namespace cortado::plan {

// What an iteration goes by. The sum is the iteration.
struct SweepParts {
  Seconds compute, exchange, sync;  // exchange: tensors, partial sums, statistics; sync: sums of gradients
  Seconds total() const { return compute + exchange + sync; }
};

// What keeps an iteration from being shorter. `memory`: the cuts that would be faster do not fit.
enum class SweepBound { compute, exchange, sync, memory };
std::string_view name_of(SweepBound bound);

// A class of links made twice as fast, the network planned anew for it.
struct LinkGain {
  LinkClass links;  // as they are
  Seconds seconds;  // of an iteration, with them twice as fast
};

// A network planned for a part of a machine. Without a plan that fits only `needs` is known beside the axes.
struct SweepPoint {
  int devices = 1;
  SweepBatch batch;
  int64_t samples = 0;                 // of an iteration
  std::optional<Bandwidth> bandwidth;  // of the links that the sweep varies
  double price_per_hour = 0;           // of the devices and their nodes; 0: not known
  Bytes needs;                         // where nothing fits: of a device at least; else 0
  SweepParts parts;
  bool simulated = false;      // else parts are added up, as if nothing were hidden
  Bytes memory;                // of the device that holds most
  bool proven = true;          // the plan is optimal by the planner's costs
  double gap = 0;              // where it is not proven: it costs at most this share more than the optimum
  Seconds planned, unlimited;  // what the plan costs; what the cheapest would if all memory were there
  double efficiency = 0;       // images per second and device, against the first of its series
  std::vector<LinkGain> gains;

  bool fits() const { return needs.count == 0; }
  Seconds seconds() const { return parts.total(); }
  double images_per_second() const { return static_cast<double>(samples) / seconds().count; }
  double price_per_million() const;  // images; 0: not known
  SweepBound bound() const;
  const LinkGain* best_gain() const;  // the class that gains most; null: there are no links
};

// The fewest devices on which a batch fits, of those tried: each number up to 8, then doubled ones.
struct SmallestMachine {
  SweepBatch batch;
  int devices = 0;  // 0: it fits on no part of the machine
  double price_per_hour = 0;
};

struct Sweep {
  std::string net, machine, link;         // link: the class that varies; empty: none does
  Bytes memory_limit;                     // of a device
  std::vector<SweepPoint> points;         // series after series: by batch, then bandwidth, then devices
  std::vector<SmallestMachine> smallest;  // per batch
  bool priced() const;                    // the machine's file says prices
};

// How an iteration goes under a strategy, known better than by Eq. 1: by a simulation.
using SweepJudge = std::function<SweepParts(const Network&, const DeviceGraph&, const Strategy&)>;

struct SweepOptions {
  SweepJudge judge{};                             // null: nothing is simulated
  int most_simulated = 0;                         // devices of a point that is simulated
  std::function<void(const SweepPoint&)> done{};  // called after each point; null: not
};

// Plans for every point of the axes, with the request's limit of memory. A point at which nothing fits is no
// error.
Sweep sweep(const PlanRequest& request, const DeviceGraph& machine, const SweepAxes& axes,
            const SweepOptions& options);

// The fastest point, and the one whose images cost least; null: nothing fits, or prices are not known.
const SweepPoint* fastest(const Sweep& sweep);
const SweepPoint* cheapest(const Sweep& sweep);

}  // namespace cortado::plan
