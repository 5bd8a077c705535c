#pragma once

#include "cortado/comm/communicator.h"

namespace cortado {

// Processors this process may use by its affinity mask.
int usable_processors();

// How many of them are this rank's, at least 1: ranks of one machine that may use the same processors share
// them evenly; a launcher that bound each rank to its own has shared them already. All ranks call it.
int processors_of_rank(Communicator& communicator);

}  // namespace cortado
