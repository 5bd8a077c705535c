#pragma once

#include <vector>

#include "cortado/parallel/schedule.h"

namespace cortado {

// Returns schedules worth trying for a net with so many layers that have parameters. Gradient chunks are
// those of Lee et al. (2017, Algorithm 2: k layers first, for k below `layers`), by bytes, by layer, each
// parameter alone, and all in one; each with late updates and without. No schedule comes twice.
std::vector<Schedule> schedules(int layers);

}  // namespace cortado
