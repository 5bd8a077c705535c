#include "cortado/measure/job_costs.h"

#include <fmt/format.h>
#include <utility>

#include "cortado/measure/cache.h"

namespace cortado {

namespace {

// Ranks must simulate the same Programs, so that they measure the same tasks.
KernelProfile profile_of(const JobTimes& times, const std::string& kernels) {
  if (!times.equal_processors()) return KernelProfile::unknown();
  return KernelProfile::here({.kernels = kernels == measured_kernels ? "" : kernels});
}

}  // namespace

JobCosts::JobCosts(Communicator& job, std::string kernels, Notices notify)
    : kernels_(std::move(kernels)),
      times_(job, std::move(notify)),
      profile_(profile_of(times_, kernels_)),
      algorithms_(times_),
      costs_(
          times_.machine(), times_.table(), [this](const Task& task) { return measure(task); }, kernels_) {}

TaskTime JobCosts::measure(const Task& task) {
  if (!std::exchange(notified_, true))
    times_.notify(fmt::format("measuring what layers take on this machine; kept in {}",
                              cache_folder().empty() ? "no place: there is no $HOME" : cache_folder()));
  if (kernels_ != measured_kernels) return times_.measure(task, kernels_);
  return is_convolution(task) ? algorithms_.fastest(task) : times_.measure(task, "");
}

}  // namespace cortado
