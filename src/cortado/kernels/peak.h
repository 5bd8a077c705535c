#pragma once

#include "cortado/base/units.h"

namespace cortado {

// Float32 multiply-adds that the compute threads reach together on registers alone, in FLOP per second (a
// multiply-add counts two): the limit no kernel passes. The best of several short runs, about `duration` in
// all.
double measure_peak(Seconds duration = {0.2});

}  // namespace cortado
