#include "cortado/auto/job_cut.h"

#include <fmt/format.h>
#include <utility>

#include "cortado/auto/recompute.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/version.h"
#include "cortado/device/host/host_runtime.h"
#include "cortado/exec/device_kernels.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/select.h"
#include "cortado/measure/measured_kernels.h"

namespace cortado {

void check_kernels(const JobCut& cut, Spelling spelled) {
  if (cut.fast_math && !cut.kernels.empty())
    throw UserError(
        fmt::format("{0}: allows more kernels, and {1} {2} allows fewer; give one of them ({1} winograd-4x4 "
                    "uses that alone where it can)",
                    spelled("fast-math"), spelled("kernels"), cut.kernels));
  if (!cut.kernels.empty()) require_kernels_named(cut.kernels, measured_kernels);
  if (!cut.reproducible) return;
  const std::string given = cut.fast_math         ? spelled("fast-math")
                            : cut.kernels.empty() ? ""
                                                  : spelled("kernels");
  if (!given.empty())
    throw UserError(
        fmt::format("{}: the net alone says which kernels run, so {} has no say; give one of them",
                    spelled("reproducible"), given));
  if (cut.strategy == "auto")
    throw UserError(fmt::format(
        "{}: {} auto measures costs, and may choose cuts whose sums are not reproducible; give data, "
        "owt or a file",
        spelled("reproducible"), spelled("strategy")));
}

std::string strategy_name(const JobCut& cut, int ranks) {
  if (!cut.strategy.empty()) return cut.strategy;
  return ranks == 1 ? "single" : cut.reproducible ? "data" : "auto";
}

std::string kernels_of(const JobCut& cut) {
  return cut.reproducible ? reproducible_kernels : cut.fast_math ? fast_math : cut.kernels;
}

// The choice of what is recomputed does not know the sums of blocks.
void check_memory_limit(const JobCut& cut) {
  if (cut.reproducible)
    throw UserError(
        "memory-limit: beside reproducible it knows no memory to choose by; name layers in the strategy, or "
        "give recompute all");
}

Strategy strategy_of(const JobCut& cut, const Network& network, Communicator& job, int history,
                     const JobCutMessages& messages) {
  const std::string name = strategy_name(cut, job.size());
  Strategy strategy;
  device::DeviceRuntime& device = cut.device ? *cut.device : device::host();
  if (name == "auto") {
    AutoChoice choice = choose_strategy(network, job, kernels_of(cut), history, messages.notice, device);
    if (messages.on_choice) messages.on_choice(choice);
    strategy = std::move(choice.strategy);
  } else {
    strategy = load_strategy(name, network, job.size());
  }
  apply(cut.schedule, network, strategy, as_option);
  if (!cut.schedule.memory_limit.empty()) check_memory_limit(cut);
  std::string chosen = recompute_on_job(cut.schedule, network, job, kernels_of(cut), history, strategy,
                                        as_option, messages.notice, device);
  if (chosen.empty()) return strategy;
  chosen.pop_back();  // the line's end
  if (job.rank() == 0 && messages.notice) messages.notice(chosen);
  return strategy;
}

KernelChoice select_kernels(const JobCut& cut, const Network& network, Communicator& job,
                            const CompileOptions& compiled, const Notices& notice) {
  device::DeviceRuntime& device = cut.device ? *cut.device : device::host();
  KernelChoice named = kernels_on(device, kernels_of(cut), cut.mixed_devices);
  if (named.no_other && !kernels_of(cut).empty() && kernels_of(cut) != gpu_kernels && !cut.fast_math)
    throw UserError(fmt::format("kernels {}: a GPU has only those named {}", kernels_of(cut), gpu_kernels));
  if (cut.mixed_devices && !kernels_of(cut).empty())
    throw UserError(fmt::format(
        "kernels {}: where devices of several kinds share layers, each has its own; leave them out",
        kernels_of(cut)));
  if (kernels_of(cut) != measured_kernels) return named;
  JobTimes times(job, notice, device);
  KernelChoice choice = choose_measured(network, compiled, times);
  times.save();
  return choice;
}

CompileOptions compile_options(const JobCut& cut, const Network& network, Communicator& job,
                               const JobCutMessages& messages) {
  const Strategy strategy = strategy_of(cut, network, job, 1, messages);
  CompileOptions options{.strategies = resolve(strategy, network, job.size(), strategy_name(cut, job.size())),
                         .schedule = strategy.schedule,
                         .ranks = job.size(),
                         .rank = job.rank(),
                         .fit_channels = is_built_in(strategy_name(cut, job.size()))};
  options.kernels = select_kernels(cut, network, job, options, messages.notice);
  return options;
}

void check_same_start(const JobCut& cut, Communicator& job, std::vector<StartFact> facts) {
  if (job.size() == 1) return;
  const std::string strategy = strategy_name(cut, job.size());
  facts.insert(facts.begin(), {"version of cortado", std::string(version())});
  facts.push_back({"--strategy " + strategy, strategy.ends_with(".json") ? read_file(strategy) : strategy});
  facts.push_back({"--kernels", cut.kernels});
  facts.push_back({"--fast-math", cut.fast_math ? "given" : ""});
  facts.push_back({"--reproducible", cut.reproducible ? "given" : ""});
  static_assert(lists_all_members<ScheduleChanges>());
  for_each_field<ScheduleChanges>([&](const auto& field) {
    facts.push_back({fmt::format("--{}", field.name), word_of(cut.schedule.*field.member, Words::all)});
  });
  check_same_start(job, facts);
}

}  // namespace cortado
