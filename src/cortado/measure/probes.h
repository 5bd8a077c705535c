#pragma once

#include <span>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// Bytes per second that the compute threads together move by a triad, a = b + s * c over arrays far beyond
// the caches, counting three floats an element. The best of the sweeps that `duration` allows.
Bandwidth measure_memory_bandwidth(Seconds duration);

// What starting the compute threads on work and waiting for them takes: the median of many.
Seconds measure_task_overhead();

// Pairs of ranks, each once, in rounds whose pairs may be measured at the same time: no node is in two of
// them. nodes: of each rank.
using RankPair = std::pair<int, int>;
std::vector<std::vector<RankPair>> rounds_of_pairs(std::span<const int> nodes);

// What follows: all ranks call it with the same arguments, and `duration` is about what it takes in all.

// Links between all pairs of ranks as Machine::pairs, at every rank. Latency: half the median round trip of
// one float. Bandwidth: that of messages so long that they take a millisecond (16 MiB at most), less latency.
std::vector<Link> measure_pairs(Communicator& job, std::span<const int> nodes, Seconds duration);

// What each node sends or receives, whichever is more, when all of its ranks send to the next node at a time.
// All ranks get it. `pairs`: as measured.
std::vector<Bandwidth> measure_nics(Communicator& job, std::span<const int> nodes,
                                    const std::vector<Link>& pairs);

// What bytes cost ranks that compute meanwhile: how much fewer multiply-adds they make while messages go
// round a ring of the ranks of each node, and of the first ranks of all nodes. The median of a few rounds,
// the same at every rank. `pairs`: as measured.
MessageOverhead measure_message_overhead(Communicator& job, std::span<const int> nodes,
                                         const std::vector<Link>& pairs, Seconds duration);

// Sums over the first 2, 4, 8, ... and all ranks, of sizes from 1 KiB to 16 MiB as far as time allows.
// Rank 0 gets them.
std::vector<CollectiveTime> measure_allreduce(Communicator& job, Seconds duration);

}  // namespace cortado
