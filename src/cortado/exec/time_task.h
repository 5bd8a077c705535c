#pragma once

#include <string>
#include <vector>

#include "cortado/device/host/host_runtime.h"
#include "cortado/exec/pass_times.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/task.h"

namespace cortado {

// A kernel's part of a chain.
struct ChainPart {
  Task task;
  Selection selection;
};
// Returns, in order, what the Executor would run of a task (`kernels` as its option): the task itself, or
// the parts of a chain that no kernel runs as one.
std::vector<ChainPart> parts_of(const Task& task, const std::string& kernels = "");

// Measures a task on tensors of its own, on all compute threads, by the kernels of parts_of(). The result is
// the median of at most so many runs of each pass; a quick first run does not count. Caches hold what they
// would hold in an iteration: what the step before has just written, as much as a core's own cache holds of
// it, and nothing else. A chain that no kernel runs as one is the sum of its parts. Sums over devices are not
// waited for. Layers that write files take no time.
//
// On another device than the host a pass takes from the launch until its queue has done it; nothing is known
// of caches there. Throws UserError for a layer of which a GPU has no kernel.
inline constexpr int usual_runs = 5;
PassTimes time_task(const Task& task, const std::string& kernels = "", int most_runs = usual_runs,
                    device::DeviceRuntime& device = device::host());

}  // namespace cortado
