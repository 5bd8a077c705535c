#pragma once

#include "cortado/base/units.h"

namespace cortado {

// Float32 multiply-adds that the compute threads reach together on registers alone, in FLOP per second (a
// multiply-add counts two): the limit no kernel passes. The best of several runs of a tenth of a second,
// `duration` in all and one at least; what the threads share a core with takes its part.
double measure_peak(Seconds duration = {0.2});

}  // namespace cortado
