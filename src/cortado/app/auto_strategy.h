#pragma once

#include <string>

#include "cortado/comm/communicator.h"
#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// `--strategy auto`: the cheapest strategy for this network on the ranks of this job, by costs measured here
// (job_costs.h), or the best built-in one where that is nearly as good. All ranks call it and get the same.
// Prints one line that says what was chosen.
Strategy auto_strategy(const Network& network, Communicator& job, const std::string& kernels);

}  // namespace cortado
