#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cortado/comm/communicator.h"

namespace cortado {

// The halves of a sum over a ring that are run; both make an allreduce.
struct RingPhases {
  bool reduce_scatter = true, allgather = true;
};

// Elements [offset, offset + count) of the vector.
struct RingMessage {
  int64_t offset = 0, count = 0;
};

// What member m of p does on a ring m -> m+1 (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms,
// 2009): chunk i of the vector travels from member i+1 around to member i and is summed on its way, then from
// i around to i-1. Messages are segments of chunks; both neighbours list them in the same order. The order in
// which a chunk is summed depends on nothing but p.
struct RingSchedule {
  std::vector<RingMessage> sends, receives;
  size_t summed = 0;  // the first `summed` receives are added to the vector, the others replace it
  // Send j leaves once receive j - ready_sends has arrived; the first `ready_sends` leave at once. In an
  // allreduce a receive r that replaces overwrites what send r - summed sent.
  size_t ready_sends = 0;
};
RingSchedule ring_schedule(std::span<const int64_t> counts, int member, RingPhases phases, int64_t segment);

// Bytes of a segment over links of that rate and latency in seconds: the power of two nearest to what a link
// carries in half a millisecond, or in its latency if that is longer; 16 KiB to 128 KiB. What is urgent waits
// for the segments on the way, and each segment costs its ends a message.
int64_t segment_over(double bytes_per_second, double latency);

// `count` elements in p chunks whose sizes differ by at most one.
std::vector<int64_t> balanced_chunks(int64_t count, int members);

// The index of `rank` in the group; checks that the group ascends and contains it.
int group_member(std::span<const int> group, int rank);

// Bytes that the member moves.
Traffic ring_traffic(const RingSchedule& schedule, ElementType type);

}  // namespace cortado
