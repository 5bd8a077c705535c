#pragma once

#include <string>
#include <vector>

#include "cortado/report/time_report.h"

namespace cortado {

// Returns the mean milliseconds of each node of the network in a pass. The time of a chain of layers counts
// for its first one.
IndexedVector<NodeIndex, double> means_of_nodes(const Network& network, const Program& program,
                                                const std::vector<IterationTimes>& times,
                                                IndexedVector<WorkIndex, Seconds> IterationTimes::*pass);

// Layers that a kernel runs with the one before them: "relu1 (in conv1), relu2 (in conv2)".
std::string layers_within(const Network& network, const Program& program);

}  // namespace cortado
