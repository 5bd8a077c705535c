#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cortado/device/host/host_runtime.h"
#include "cortado/measure/job_costs.h"

namespace cortado {

// Returns the seconds of an iteration of the job under a strategy, on random data: the least of a few
// iterations, since other work on a machine only ever makes them longer. They are the slowest rank's, and
// every rank gets the same number. All ranks call it. `costs`: whose kernels run. `device`: this rank's.
Seconds try_strategy(const Network& network, Communicator& job, const Strategy& strategy, JobCosts& costs,
                     device::DeviceRuntime& device = device::host());

// Returns the seconds of each candidate: `known` ones as they are, others the least of up to three of
// run(candidate). Other load only lengthens an iteration, and comes and goes. So those that take up to half
// more than the fastest run again, in the other order, and those that then take up to a tenth more once more;
// none where one alone is so fast.
std::vector<Seconds> try_in_turns(const std::vector<std::optional<Seconds>>& known,
                                  const std::function<Seconds(size_t candidate)>& run);

}  // namespace cortado
