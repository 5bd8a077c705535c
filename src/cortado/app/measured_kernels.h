#pragma once

#include <functional>
#include <string>

#include "cortado/app/algorithms.h"
#include "cortado/net/network.h"
#include "cortado/parallel/schedule.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// Tells by which implementation a task is computed; "": the first of the list that accepts.
using KernelChoice = std::function<std::string(const Task&)>;

// For each convolution of a network so cut, the implementation whose slowest rank is fastest (algorithms.h).
// Replicas of a layer's weights get the same one, so that weights lie alike. All ranks call it.
KernelChoice choose_measured(const Network& network, const NodeStrategies& strategies,
                             const Schedule& schedule, JobTimes& times,
                             Algorithms::Effort effort = Algorithms::Effort::thorough);

}  // namespace cortado
