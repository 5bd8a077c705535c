#include "cortado/tune/tune_schedule.h"

#include <algorithm>
#include <vector>

namespace cortado {
namespace {

using Kind = GradientChunks::Kind;

std::vector<GradientChunks> all_chunks(int layers) {
  std::vector<GradientChunks> all;
  for (Kind kind : {Kind::parameter, Kind::layer, Kind::one}) all.push_back({.kind = kind});
  for (int64_t mebibytes : {1, 4, 16, 64}) all.push_back({.kind = Kind::bytes, .bytes = {mebibytes << 20}});
  // Steps grow with k: one layer more matters less and less.
  for (int k = 1; k < layers; k += std::max(1, k / 8)) all.push_back({.kind = Kind::first, .layers = k});
  return all;
}

}  // namespace

TunedSchedule tune_schedule(const Schedule& start, int layers,
                            const std::function<Seconds(const Schedule&)>& seconds) {
  TunedSchedule best{.schedule = start, .seconds = seconds(start), .tried = 1};
  best.before = best.seconds;
  for (const GradientChunks& chunks : all_chunks(layers)) {
    for (const bool late : {true, false}) {
      const Schedule schedule{.chunks = chunks, .late_updates = late};
      if (schedule == start) continue;
      const Seconds found = seconds(schedule);
      ++best.tried;
      if (found < best.seconds) {
        best.schedule = schedule;
        best.seconds = found;
      }
    }
  }
  return best;
}

}  // namespace cortado
