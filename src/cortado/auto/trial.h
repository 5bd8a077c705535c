#pragma once

#include "cortado/device/host/host_runtime.h"
#include "cortado/measure/job_costs.h"

namespace cortado {

// Returns the seconds of an iteration of the job under a strategy, on random data: the least of a few
// iterations, since other work on a machine only ever makes them longer. They are the slowest rank's, and
// every rank gets the same number. All ranks call it. `costs`: whose kernels run. `device`: this rank's.
Seconds try_strategy(const Network& network, Communicator& job, const Strategy& strategy, JobCosts& costs,
                     device::DeviceRuntime& device = device::host());

}  // namespace cortado
