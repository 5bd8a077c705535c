#pragma once

#include "cortado/measure/job_costs.h"

namespace cortado {

// Seconds of an iteration of the job under a strategy, on random data: the least of a few, as what else runs
// on a machine only ever makes them longer, of the slowest rank, the same at every rank. All ranks call it.
// `costs`: whose kernels run.
Seconds try_strategy(const Network& network, Communicator& job, const Strategy& strategy, JobCosts& costs);

}  // namespace cortado
