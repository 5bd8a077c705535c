#include "cortado/measure/job_costs.h"

#include <fmt/format.h>
#include <utility>

#include "cortado/exec/device_kernels.h"
#include "cortado/measure/cache.h"

namespace cortado {

namespace {

// Ranks must simulate the same Programs, so that they measure the same tasks.
KernelProfile profile_of(const JobTimes& times, const KernelChoice& choice) {
  return times.equal_processors() ? KernelProfile::here(choice) : KernelProfile::unknown();
}

KernelChoice choice_of(const JobTimes& times, const std::string& kernels) {
  return kernels_on(times.device(), kernels == measured_kernels ? "" : kernels, times.mixed_devices());
}

}  // namespace

JobCosts::JobCosts(Communicator& job, std::string kernels, Notices notify, device::DeviceRuntime& device)
    : kernels_(std::move(kernels)),
      times_(job, std::move(notify), device),
      profile_(profile_of(times_, choice_of(times_, kernels_))),
      algorithms_(times_),
      costs_(
          times_.machine(), times_.table(), [this](const Task& task) { return measure(task); }, kernels_) {}

KernelChoice JobCosts::kernel_choice() const { return choice_of(times_, kernels_); }

TaskTime JobCosts::measure(const Task& task) {
  if (!std::exchange(notified_, true))
    times_.notify(fmt::format("measuring what layers take on this machine; kept in {}",
                              cache_folder().empty() ? "no place: there is no $HOME" : cache_folder()));
  if (kernels_ != measured_kernels) return times_.measure(task, kernels_);
  return is_convolution(task) ? algorithms_.fastest(task) : times_.measure(task, "");
}

}  // namespace cortado
