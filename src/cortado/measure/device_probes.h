#pragma once

#include "cortado/base/units.h"

namespace cortado {

// Bytes per second that the compute threads together move by a triad, a = b + s * c over arrays far beyond
// the caches, counting three floats an element. The best of the sweeps that `duration` allows.
Bandwidth measure_memory_bandwidth(Seconds duration);

// What starting the compute threads on work and waiting for them takes: the median of many.
Seconds measure_task_overhead();

}  // namespace cortado
