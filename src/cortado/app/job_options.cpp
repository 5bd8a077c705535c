#include "cortado/app/job_options.h"

#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cortado/base/error.h"
#include "cortado/cli/number_option.h"
#include "cortado/comm/processors.h"
#include "cortado/job/join_ranks.h"
#include "cortado/parallel/strategy.h"
#include "cortado/terminal/log_lines.h"

namespace cortado {

void add_rank_options(CLI::App& command, JobOptions& o) {
  add_number(command, "--threads", o.threads, 1, most_threads,
             "Compute threads of each rank; default: its share of the cores it may use");
  command.add_flag("--no-bind", o.no_bind, "Leave it to the system where ranks of one machine run");
  add_number(
      command, "--ranks", o.ranks, 1, most_ranks,
      "Start this many ranks (processes) that share the work; default: as many as the launcher that this "
      "command runs under, else 1");
  add_launch_options(command, o);
}

void add_launch_options(CLI::App& command, JobOptions& o) {
  command.add_option(
      "--launch", o.launch,
      "Command that starts the ranks, before '-n RANKS': \"mpiexec -hosts a,b\", \"srun\"; default: "
      "this build's mpiexec on this host");
  add_number(command, "--stall-timeout", o.stall_timeout, 0, longest_time_limit,
             "On several ranks: end the job (exit code 3) when a rank's process has not answered for so many "
             "seconds, or all ranks have waited for each other so long; 0: never");
  add_number(command, "--peer-timeout", o.peer_timeout, 1, longest_time_limit,
             "On several ranks: end the job (exit code 3) when a host cannot be reached for so many seconds");
  command.add_option(
      "--listen", o.listen,
      "Address of this host, in numbers, at which its ranks find this command; default: every one");
}

void add_schedule_options(CLI::App& command, ScheduleChanges& o) {
  command.add_option(
      "--gradient-chunks", o.gradient_chunks,
      "Gradients that are summed over ranks together: parameter, layer, first:LAYERS (those of "
      "so many layers, then all others), a size such as 4MiB, or one; default: as the strategy "
      "says, else 1MiB");
  command.add_flag("--no-late-updates", o.no_late_updates,
                   "Wait for all sums of gradients at the end of each iteration");
  command.add_flag("--halves", o.halves,
                   "Where halos travel: half of a batch computes while the other half's are under way");
  command
      .add_option("--replicate", o.replicate,
                  "Layers (names, or patterns such as fc*) whose replicas gather inputs and output gradients "
                  "and compute the whole gradients each, in place of summing gradients")
      ->delimiter(',');
  command.add_option("--recompute", o.recompute, recompute_help);
  command.add_option("--memory-limit", o.memory_limit, memory_limit_help);
}

void add_job_options(CLI::App& command, JobOptions& o) {
  add_rank_options(command, o);
  command.add_option(
      "--strategy", o.cut.strategy,
      fmt::format("How layers are cut over the ranks: auto (the cheapest way, by costs measured here), {}, "
                  "random:SEED or a file (.json); default: auto",
                  fmt::join(built_in_strategies(), ", ")));
  add_device_options(command, o.devices);
  command.add_option("--kernels", o.cut.kernels,
                     "Where this implementation knows a layer, use no other: reference, lowering-1, ...; or "
                     "measured: for each convolution the one that is fastest on this machine");
  command.add_flag(
      "--fast-math", o.cut.fast_math,
      "Use kernels with larger rounding errors, too: Winograd's for 5x5 convolutions in larger tiles");
  command.add_flag(
      "--reproducible", o.cut.reproducible,
      "Get the same bits on any number of ranks and threads: sums go over fixed blocks in a fixed "
      "tree; what cannot is refused");
  add_schedule_options(command, o.cut.schedule);
  command.add_flag("--verbose", o.verbose, "Tell which kernel each layer got and why faster ones refused");
}

void add_device_options(CLI::App& command, DeviceWords& o) {
  command.add_option("--device", o.device,
                     "Where each rank computes: cpu, gpu (its own) or gpu:N; default: cpu");
  command.add_option("--devices", o.devices,
                     "Where the ranks of each host compute: gpu:0,gpu:1,cpu; also: so many");
  command.add_option(
      "--graph", o.graph,
      "on or off: launch the steps of an iteration as graphs where the device can; default: on");
  command.add_option("--gpu", o.gpu, "Caffe's: all, or numbers as in 0,1; a rank for each");
  command.add_flag("--cpu-instead", o.cpu_instead,
                   "Where --gpu asks for what is not there, take the CPU; so does CORTADO_CPU_INSTEAD=1");
}

std::unique_ptr<Communicator> join_job(JobOptions& o) {
  const std::string instead = cpu_instead_notice(o.devices, as_option);
  check_kernels(o.cut, as_option);
  std::unique_ptr<Communicator> job = join_ranks(o.ranks);
  o.device = open_rank_device(o.devices, *job, as_option);
  o.cut.device = o.device.runtime.get(), o.cut.mixed_devices = o.device.mixed();
  take_processors(*job, o.threads, !o.no_bind);
  if (job->rank() > 0 && !std::freopen("/dev/null", "w", stdout)) {
    throw UserError("/dev/null cannot be opened");
  }
  if (!instead.empty()) log_line(our_line, instead);
  return job;
}

void add_inputs(CommandFiles& files, const JobOptions& machine) {
  if (machine.cut.strategy.ends_with(".json")) files.reads(machine.cut.strategy);
}

}  // namespace cortado
