#pragma once

#include <functional>

#include "cortado/base/units.h"
#include "cortado/parallel/schedule.h"

namespace cortado {

struct TunedSchedule {
  Schedule schedule;
  Seconds seconds, before;  // of an iteration under it, and under the schedule that the search began with
  int tried = 0;
};

// The schedule with which an iteration takes least, as `seconds` says (a Simulation of the job): gradient
// chunks of Lee et al.'s two kinds (Algorithm 2: k layers first, for k up to `layers`), by bytes, by layer,
// each alone or all in one, with late updates or without. Of equals the one tried first; `start` is the
// first, so the result is never worse.
TunedSchedule tune_schedule(const Schedule& start, int layers,
                            const std::function<Seconds(const Schedule&)>& seconds);

}  // namespace cortado
