#pragma once

#include <vector>

#include "cortado/parallel/schedule.h"

namespace cortado {

// Schedules worth trying for a net of so many layers with parameters: gradient chunks of Lee et al.'s two
// kinds (2017, Algorithm 2: k layers first, for k below `layers`), by bytes, by layer, each alone or all in
// one, with late updates or without. None twice.
std::vector<Schedule> schedules(int layers);

}  // namespace cortado
