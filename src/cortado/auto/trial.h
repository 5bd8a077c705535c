#pragma once

#include <functional>
#include <vector>

#include "cortado/exec/executor.h"
#include "cortado/measure/job_costs.h"
#include "cortado/report/time_report.h"
#include "cortado/train/optimizer.h"

namespace cortado {

// Runs iterations of a training, with updates by `optimizer` at a rate too small to matter. The first ones do
// not count, since they touch memory first. Calls `each` for every one that counts.
inline constexpr int warm_up_iterations = 2;
std::vector<IterationTimes> run_iterations(Executor& executor, Optimizer& optimizer, int count,
                                           const std::function<void(const IterationTimes&)>& each = nullptr);

// Seconds of an iteration of the job under a strategy, on random data: the least of a few, as what else runs
// on a machine only ever makes them longer, of the slowest rank, the same at every rank. All ranks call it.
// `costs`: whose kernels run.
Seconds try_strategy(const Network& network, Communicator& job, const Strategy& strategy, JobCosts& costs);

}  // namespace cortado
