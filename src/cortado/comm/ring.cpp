#include "cortado/comm/ring.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "cortado/base/error.h"

namespace cortado {

RingSchedule ring_schedule(std::span<const int64_t> counts, int member, RingPhases phases, int64_t segment) {
  int members = static_cast<int>(counts.size());
  ensure(member >= 0 && member < members && segment > 0, "a ring has its member and segments");
  std::vector<int64_t> offsets(counts.size(), 0);
  for (int i = 1; i < members; ++i) offsets[i] = offsets[i - 1] + counts[i - 1];
  auto append = [&](std::vector<RingMessage>& list, int chunk) {
    int i = ((chunk % members) + members) % members;
    for (int64_t done = 0; done < counts[i]; done += segment)
      list.push_back({offsets[i] + done, std::min(segment, counts[i] - done)});
  };

  RingSchedule schedule;
  if (members == 1) return schedule;
  // A chunk that arrives in one step leaves in the next; only the last one stays.
  std::vector<int> arriving;
  if (phases.reduce_scatter) {
    for (int step = 0; step < members - 1; ++step) arriving.push_back(member - 2 - step);
  }
  size_t summed_chunks = arriving.size();
  if (phases.allgather) {
    for (int step = 0; step < members - 1; ++step) arriving.push_back(member - 1 - step);
  }
  append(schedule.sends, phases.reduce_scatter ? member - 1 : member);
  schedule.ready_sends = schedule.sends.size();
  for (size_t i = 0; i < arriving.size(); ++i) {
    append(schedule.receives, arriving[i]);
    if (i + 1 < arriving.size()) append(schedule.sends, arriving[i]);
    if (i + 1 == summed_chunks) schedule.summed = schedule.receives.size();
  }
  return schedule;
}

int64_t segment_over(double bytes_per_second, double latency) {
  const double seconds = std::max(0.5e-3, latency);
  const double nearest = std::round(std::log2(std::max(1.0, bytes_per_second * seconds)));
  return int64_t{1} << static_cast<int>(std::clamp(nearest, 14.0, 17.0));
}

std::vector<int64_t> balanced_chunks(int64_t count, int members) {
  std::vector<int64_t> chunks(static_cast<size_t>(members));
  for (int i = 0; i < members; ++i) chunks[i] = count * (i + 1) / members - count * i / members;
  return chunks;
}

int group_member(std::span<const int> group, int rank) {
  ensure(std::ranges::adjacent_find(group, std::greater_equal<>()) == group.end(), "a group's ranks ascend");
  auto found = std::ranges::find(group, rank);
  ensure(found != group.end(), "a group contains the rank that uses it");
  return static_cast<int>(found - group.begin());
}

Traffic ring_traffic(const RingSchedule& schedule, ElementType type) {
  Traffic traffic;
  for (const RingMessage& message : schedule.sends) traffic.sent += bytes_of(message.count, type).count;
  for (const RingMessage& message : schedule.receives)
    traffic.received += bytes_of(message.count, type).count;
  return traffic;
}

}  // namespace cortado
