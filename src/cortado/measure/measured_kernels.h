#pragma once

#include "cortado/compile/compile.h"
#include "cortado/measure/algorithms.h"
#include "cortado/net/network.h"

namespace cortado {

// Chooses, for each convolution of a network that is compiled so, the implementation whose slowest rank is
// fastest (algorithms.h). Replicas of a layer's weights get the same one, so that weights have the same
// order. All ranks call it.
KernelChoice choose_measured(const Network& network, const CompileOptions& options, JobTimes& times,
                             Algorithms::Effort effort = Algorithms::Effort::thorough);

}  // namespace cortado
