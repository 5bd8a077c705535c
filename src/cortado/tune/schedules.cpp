#include "cortado/tune/schedules.h"

#include <algorithm>

namespace cortado {

std::vector<Schedule> schedules(int layers) {
  using Kind = GradientChunks::Kind;
  std::vector<GradientChunks> all;
  for (Kind kind : {Kind::parameter, Kind::layer, Kind::one}) all.push_back({.kind = kind});
  for (int64_t mebibytes : {1, 4, 16, 64}) all.push_back({.kind = Kind::bytes, .bytes = {mebibytes << 20}});
  // k grows in ever larger steps: the more layers there are, the less one more matters.
  for (int k = 1; k < layers; k += std::max(1, k / 8)) all.push_back({.kind = Kind::first, .layers = k});
  std::vector<Schedule> schedules;
  for (const GradientChunks& chunks : all)
    for (const bool late : {true, false}) schedules.push_back({.chunks = chunks, .late_updates = late});
  return schedules;
}

}  // namespace cortado
