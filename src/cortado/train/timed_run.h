#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/exec/executor.h"
#include "cortado/report/run_report.h"
#include "cortado/report/time_report.h"
#include "cortado/train/optimizer.h"

namespace cortado {

using IterationObserver = std::function<void(const IterationTimes&)>;

// Runs iterations of a training, with updates by `optimizer` at a rate too small to matter. The first ones do
// not count, since they touch memory first. Calls `each` for every one that counts.
inline constexpr int warm_up_iterations = 2;
std::vector<IterationTimes> run_iterations(Executor& executor, Optimizer& optimizer, int count,
                                           const IterationObserver& each = nullptr);

// What timed iterations of a job were. `slices`, at rank 0: of all ranks, of an iteration near the median.
struct TimedRun {
  std::vector<IterationTimes> times;  // of this rank
  TimeReport report;
  std::vector<Bytes> memory;         // resident at most, of each rank
  std::vector<Bytes> device_memory;  // the same of each rank's device; 0: it is the host's
  std::vector<TraceSlice> slices;
  RunReport::Drawn drawn;  // which iteration they are of
};

// Runs that many iterations, with updates by plain momentum, as most nets are trained. `slices`: whether they
// are wanted. Where a device works after it is told, its layers are timed in as many more iterations, in
// which it does each step by itself. All ranks call it.
TimedRun time_iterations(Executor& executor, ParameterStore& parameters, Communicator& job, int count,
                         bool slices, const IterationObserver& each = nullptr);

std::string memory_text(const TimedRun& run);  // "12.3 MiB resident at most"
// The times (times_json()), this rank's threads, and the memory of all ranks.
nlohmann::ordered_json run_json(const TimedRun& run);

}  // namespace cortado
