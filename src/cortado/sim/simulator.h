#pragma once

#include <span>
#include <vector>

#include "cortado/cost/cost_model.h"
#include "cortado/machine/device_graph.h"
#include "cortado/program/equal_blocks.h"
#include "cortado/program/program.h"
#include "cortado/program/timeline.h"

namespace cortado {

// One of many iterations of a job, as a machine would run them. Where steps are carried into the next
// iteration, those of the one before reach into this one; so a step may begin before 0 or end after the
// iteration.
struct Simulation {
  Timeline timeline;  // by rank; of each rank in the order of its steps
  Seconds iteration;  // from the end of the iteration before, at the last rank, to the end of this one
  std::vector<Seconds> ends, computing;  // per rank: its end; of that, in steps of the compute lane
};

// A simulation of discrete events. Each rank has a compute lane and a communication lane, as the Executor has
// (docs/explanation/lanes.md). Compute steps follow one another; communication steps start in order, as
// soon as what each waits for has ended, and overlap. A message begins when both its ends have come to it, a
// collective when all of its group have. Transfers under way share the ports of devices, network interfaces
// and buses, and what is needed soonest goes first (flows.h); a transfer alone takes what `costs` says.
// Computing takes longer by what the bytes that move meanwhile cost its device (MessageOverhead). Batches are
// always there in time.
//
// `programs` are those of all ranks, in order, lowered from one placement; rank i runs on device i.
Simulation simulate(std::span<const Program> programs, CostModel& costs, const DeviceGraph& machine);
// The same with the programs of ranks that differ alone, where the job has equal blocks, each on whole nodes
// that are alike. What it tells is of these ranks.
Simulation simulate(std::span<const Program> programs, EqualBlocks blocks, CostModel& costs,
                    const DeviceGraph& machine);

}  // namespace cortado
