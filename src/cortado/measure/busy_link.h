#pragma once

#include <span>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// How much longer a message between nodes takes while a large sum, which gives way to it, uses its link.
// Small sums over the first ranks of all nodes are timed beside a large one and alone; the difference is
// shared by the messages that follow one another in a small sum. The mean over those ranks, the same at every
// rank; 0 on one node. `pairs`: as measured. All ranks call it with the same arguments; `duration` is about
// what it takes.
Seconds measure_busy_link(Communicator& job, std::span<const int> nodes, const std::vector<Link>& pairs,
                          Seconds duration);

}  // namespace cortado
