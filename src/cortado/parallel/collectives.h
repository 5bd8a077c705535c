#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cortado/parallel/layout.h"

namespace cortado {

// What a group of ranks does together. `push` and `pull` go between every member and servers in the hosts'
// memory: all of each member's values to be summed, and all that was summed back. Ranks whose memory is the
// host's do them as a reduce-scatter and an allgather.
enum class Collective { allreduce, reduce_scatter, allgather, push, pull };

// Whether it goes to or from servers.
inline bool is_served(Collective collective) {
  return collective == Collective::push || collective == Collective::pull;
}

// Returns how many rounds of a ring it takes: in one, each member sends on all shares but one.
int rounds_of(Collective collective);

// Floats. A smaller tensor goes from the rank that has it to others by messages, which arrive sooner than
// what is handed on from rank to rank.
inline constexpr int64_t smallest_broadcast = 1024;

// Ranks that all need one box and hold its parts among themselves.
struct RingGroup {
  std::vector<int> members;  // ascending, two or more
  Layout chunks;             // per member: its part of the box
};

// The ring in which `rank` gets its box of `needed`: of the ranks that need the same one, where they exchange
// nothing with other ranks. Nothing where there is no such ring, or messages are sooner. `moves`: transfers()
// to that layout. All ranks find the same rings. ExchangeVolumes (cost/exchange_volume.h) knows the rule for
// all ranks of many layouts at once.
std::optional<RingGroup> ring_group(std::span<const Transfer> moves, const Layout& needed, int rank);

}  // namespace cortado
