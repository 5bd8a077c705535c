#pragma once

#include <span>
#include <vector>

#include "cortado/cost/cost_model.h"
#include "cortado/machine/device_graph.h"
#include "cortado/program/program.h"
#include "cortado/program/timeline.h"

namespace cortado {

// An iteration of a job as a machine would run it, one of many: where steps are carried into the next
// iteration, those of the one before are carried into this one, and may begin before 0 or end after its end.
struct Simulation {
  Timeline timeline;  // by rank; of each rank in the order of its steps
  Seconds iteration;  // from the last rank's end of the iteration before to that of this one
  std::vector<Seconds> ends, computing;  // per rank: its end; of that, in steps of the compute lane
};

// Discrete events: each rank has a compute lane and a communication lane, as the Executor has
// (docs/design.md, section 5). Compute steps follow one another; communication steps start in order, as soon
// as what each waits for has ended, and overlap. A message begins when both its ends have come to it, a
// collective when all of its group have. What is under way at one time shares the ports of devices, network
// interfaces and buses, what is needed soonest first (flows.h); alone it takes what `costs` says. Computing
// takes longer by what the bytes that move meanwhile cost its device (MessageOverhead). Batches are there
// when they are wanted.
//
// `programs` are those of all ranks, in order, lowered from one placement; rank i runs on device i.
Simulation simulate(std::span<const Program> programs, CostModel& costs, const DeviceGraph& machine);

}  // namespace cortado
