#pragma once

#include <span>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// What bytes cost ranks that compute meanwhile: how much fewer multiply-adds they make while messages go
// round a ring of the ranks of each node, and of the first ranks of all nodes. The median of a few rounds,
// the same at every rank. `pairs`: as measured. All ranks call it with the same arguments; `duration` is
// about what it takes in all.
MessageOverhead measure_message_overhead(Communicator& job, std::span<const int> nodes,
                                         const std::vector<Link>& pairs, Seconds duration);

}  // namespace cortado
