#pragma once

#include "cortado/base/units.h"

namespace cortado {

// Float32 multiply-adds that the compute threads make together on registers alone, in FLOP per second (a
// multiply-add counts two), in about `duration` of running.
struct ComputeRate {
  double peak = 0;  // best of runs of milliseconds: the limit no kernel passes
  // Best of runs of a tenth of a second, longer than what a scheduler or a control group gives a process at a
  // time: what shares the threads' cores, or limits their time, takes its part of it.
  double sustained = 0;
  double mean = 0;  // of all runs
};
ComputeRate measure_compute_rate(Seconds duration);
double measure_peak(Seconds duration = {0.2});

}  // namespace cortado
