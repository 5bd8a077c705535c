#pragma once

#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// Sums over the first 2, 4, 8, ... and all ranks, of sizes from 1 KiB to 16 MiB as far as time allows.
// Rank 0 gets them. All ranks call it with the same `duration`, which is about what it takes in all.
std::vector<CollectiveTime> measure_allreduce(Communicator& job, Seconds duration);

}  // namespace cortado
