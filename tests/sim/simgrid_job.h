#pragma once

#include <span>
#include <vector>

#include "cortado/machine/device_graph.h"
#include "cortado/program/program.h"

namespace cortado::testing {

// Seconds of an iteration of a job as SimGrid's discrete events and flow-level network give them: an opinion
// that owes nothing to sim/ and cost/. Hosts and links are the machine's. Every rank has an actor that
// computes, for as long as `seconds` says of each step, and one that starts its messages in order; each
// message is one of SimGrid's from host to host, each collective is carried out as the messages that it
// consists of.
//
// `seconds`: per rank and step; only those of the compute lane count. SimGrid simulates once in a
// process, so it runs in one of its own. Throws InternalError when that fails.
double simgrid_iteration(std::span<const Program> programs,
                         const std::vector<IndexedVector<StepIndex, Seconds>>& seconds,
                         const DeviceGraph& machine);

}  // namespace cortado::testing
