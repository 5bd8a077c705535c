#pragma once

#include <span>
#include <vector>

#include "cortado/program/program.h"
#include "cortado/program/timeline.h"

namespace cortado {

// The compute work whose messages a communication step brings: of its own work, of the parameter, or the
// layer that a movement is for. -1: the report.
int work_served(const Program& program, const Step& step);

// The work of the layer that a step is for: an update's is the first that uses the parameter, a message's the
// one it serves. -1: none, or a load.
int layer_work(const Program& program, const Step& step);

// A stretch in which the compute lane stood still for a step of the communication lane: for a message that
// was not hidden behind computing ("measurable communication time": Lee et al., HiPC 2017, section V.B), or,
// of a load, for a batch.
struct Exposure {
  int step = 0;
  Seconds begin, end;
};

// All such stretches of an iteration of the program's rank, in order of time; none overlap. The compute lane
// waits for the message that ends last of those its next step waits for; before that one had begun, for
// whichever ended last before it began.
//
// `own`: the rank's entries, in the order of its steps. Of a carried step they are the iteration's before
// (the Executor's) or this one's (the Simulator's); `iteration` is what lies between the two.
std::vector<Exposure> exposures_of(const Program& program, std::span<const TimelineEntry> own,
                                   Seconds iteration);

}  // namespace cortado
