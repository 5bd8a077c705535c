#pragma once

#include <span>
#include <utility>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// Pairs of ranks, each once, in rounds whose pairs may be measured at the same time: no node is in two of
// them. nodes: of each rank.
using RankPair = std::pair<int, int>;
std::vector<std::vector<RankPair>> rounds_of_pairs(std::span<const int> nodes);

// The first rank of each node.
std::vector<int> first_ranks(std::span<const int> nodes);

// Of the links by which each member sends to the next one, round a ring, the one of the least bandwidth.
// `pairs`: as measured between all ranks.
Link slowest_of_ring(std::span<const int> members, const std::vector<Link>& pairs, int ranks);

// All ranks call both probes with the same arguments; `duration` is about what one takes in all.

// Links between all pairs of ranks as Machine::pairs, at every rank. Latency: half the median round trip of
// one float. Bandwidth: that of messages so long that they take a millisecond (16 MiB at most), less latency.
std::vector<Link> measure_pairs(Communicator& job, std::span<const int> nodes, Seconds duration);

// What each node sends or receives, whichever is more, when all of its ranks send to the next node at a time.
// All ranks get it. `pairs`: as measured.
std::vector<Bandwidth> measure_nics(Communicator& job, std::span<const int> nodes,
                                    const std::vector<Link>& pairs);

}  // namespace cortado
