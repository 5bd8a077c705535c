#pragma once

#include <vector>

#include "cortado/base/units.h"
#include "cortado/program/program.h"

namespace cortado {

// When a step of a Program ran (Executor) or would run (Simulator). Seconds since the iteration began.
struct TimelineEntry {
  int rank = 0;
  Lane lane = Lane::compute;
  StepIndex step{0};
  Seconds begin, end;
};
using Timeline = std::vector<TimelineEntry>;

}  // namespace cortado
