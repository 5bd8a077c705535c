#pragma once

#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/device/host/host_runtime.h"
#include "cortado/measure/cache.h"
#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// What was chosen, and why.
struct AutoChoice {
  Strategy strategy;
  bool planned = false;  // false: one rank, or no plan can be made; then the rest says nothing
  std::string obstacle;  // why none can: the strategy is data
  std::string built_in;  // the built-in strategy that was chosen, before its schedule changed; "": a plan
  size_t layers = 0, layers_not_by_sample = 0;  // of the plan
  int tried = 0;                                // strategies run for a few iterations
  double times_faster_than_data = 1, times_faster_than_owt = 1;
  double times_faster_side_by_side = 1;  // with branches on devices of their own; 1: they are not
  double times_faster_by_schedule = 1;
  std::string misfit;    // the limit of memory that no plan keeps, in words; it is planned without it then
  int measurements = 0;  // of tasks
  bool cached = false;   // nothing was measured or tried anew
  Seconds planning;

  // Says what was chosen: "as owt, fastest of 2 tried; 1.02x faster than data, 1.00x than owt".
  std::string text() const;
  // Returns text() as lines for a log, with obstacle or misfit and the seconds that planning took. No line on
  // one rank.
  std::vector<std::string> lines() const;
};

// `--strategy auto`: the cheapest strategy for this network on the ranks of this job, by costs measured here
// (measure/job_costs.h), or the best built-in one where that is nearly as good. All ranks call it and get the
// same. `kernels`: as JobCosts has them. `history`: tensors of a parameter's size that the solver keeps.
// `device`: this rank's.
AutoChoice choose_strategy(const Network& network, Communicator& job, const std::string& kernels, int history,
                           const Notices& notify = nullptr, device::DeviceRuntime& device = device::host());

}  // namespace cortado
