#pragma once

#include <span>
#include <vector>

#include "cortado/program/program.h"
#include "cortado/program/timeline.h"

namespace cortado {

// The compute work that a communication step sends or receives for: its own work, one that uses its
// parameter, or the layer that a movement is for. Nowhere: the report.
WorkIndex work_served(const Program& program, const Step& step);

// The work of the layer that a step is for. For an update this is the first work that uses the parameter, for
// a message the work that it serves. Nowhere: none, or a load.
WorkIndex layer_work(const Program& program, const Step& step);

// A stretch in which the compute lane stood still and waited for a step of the communication lane: a load of
// a batch, or a message that was not hidden under computing ("measurable communication time": Lee et al.,
// HiPC 2017, section V.B).
struct Exposure {
  StepIndex step{};
  Seconds begin, end;
};

// All such stretches of an iteration of the program's rank, in order of time; none overlap. A stretch counts
// for the message that ended last among those that the next compute step waited for. The time before that
// message began counts for whichever message ended last before.
//
// `own` has the rank's entries in the order of its steps. The entry of a carried step is of the iteration
// before (from the Executor) or of this one (from the Simulator); `iteration` is the time between the two.
std::vector<Exposure> exposures_of(const Program& program, std::span<const TimelineEntry> own,
                                   Seconds iteration);

}  // namespace cortado
