#include "cortado/app/launch.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/cli/arguments.h"
#include "cortado/cli/limits.h"
#include "cortado/cli/number_option.h"
#include "cortado/comm/launched_rank.h"
#include "cortado/comm/mpi.h"
#include "cortado/exec/rank_device.h"
#include "cortado/job/launcher_words.h"
#include "cortado/job/membership.h"
#include "cortado/job/restarts.h"
#include "cortado/job/wire.h"
#include "cortado/parallel/strategy.h"
#include "cortado/terminal/terminal.h"
#include "cortado/train/snapshot_names.h"

namespace cortado {
namespace {

bool runs_on_ranks(const std::vector<std::string>& words) {
  static const std::vector<std::string> commands = {"train", "test", "time", "verify", "machine", "plan"};
  return !words.empty() && std::ranges::find(commands, words.front()) != commands.end();
}

// Returns the number of an option, else the default. The command's parser refuses wrong values later.
int number_in(const std::vector<std::string>& words, const std::string& option, int otherwise) {
  const int number = number_of<int>(option_value(words, option).value_or("")).value_or(-1);
  return number < 0 || number > longest_time_limit ? otherwise : number;
}

// Returns the ranks that the devices of the command line are for.
int ranks_of_devices(const std::vector<std::string>& words) {
  const DeviceWords devices{.device = option_value(words, "--device").value_or(""),
                            .devices = option_value(words, "--devices").value_or(""),
                            .gpu = option_value(words, "--gpu").value_or(""),
                            .cpu_instead = std::ranges::find(words, "--cpu-instead") != words.end()};
  return static_cast<int>(devices_of(devices, as_option).size());
}

// Returns the ranks that the command line asks for. A plan for this machine is made on as many ranks as it is
// for. The command's parser refuses wrong numbers later.
int ranks_asked(const std::vector<std::string>& words) {
  const bool plan = !words.empty() && words.front() == "plan";
  if (plan && option_value(words, "--machine") != "local") return 1;
  const auto asked = option_value(words, plan ? "--devices" : "--ranks");
  if (!asked && !plan) return ranks_of_devices(words);
  const int ranks = number_of<int>(asked.value_or("1")).value_or(1);
  return ranks <= most_ranks ? ranks : 1;
}

std::vector<std::string> launcher(const std::vector<std::string>& words) {
  std::vector<std::string> launcher = split_words(option_value(words, "--launch").value_or(mpi_launcher()));
  if (launcher.empty())
    throw UserError("--launch: give the command that starts ranks, as in \"mpiexec -hosts a,b\"");
  return launcher;
}

// Lets the job run on the hosts of the file.
void take_hosts(JobStart& start, const std::string& path, HostsWatch& file,
                const std::vector<std::string>& words) {
  if (option_value(words, "--ranks"))
    throw UserError("--ranks and --hosts-file: give one; the file says how many ranks each host has");
  file = HostsWatch(path);
  const auto launcher = with_hosts(start.launcher, file.hosts());
  if (!launcher)
    throw UserError(
        fmt::format("--hosts-file {}: the launcher's command has no list of hosts, whose place these take; "
                    "give --launch with one, as in \"mpiexec -hosts a\"",
                    path));
  start.launcher = *launcher;
  start.hosts_file = &file;
  start.hosts = file.hosts();
  start.ranks = ranks_on(start.hosts);
  if (start.ranks > most_ranks)
    throw UserError(fmt::format("--hosts-file {}: it has {} ranks in all; give at most {}", path, start.ranks,
                                most_ranks));
}

}  // namespace

std::optional<int> start_job(int count, const char* const* words) {
  std::vector<std::string> normalized = normalized_arguments(count, words);
  if (!runs_on_ranks(normalized)) return std::nullopt;
  HostsWatch hosts_file;
  const int ranks = ranks_asked(normalized);
  const std::optional<std::string> hosts_path = option_value(normalized, "--hosts-file");
  const int restarts = number_in(normalized, "--restarts", 0);
  if (ranks <= 1 && restarts == 0 && !hosts_path) return std::nullopt;
  if (launched_rank() || std::getenv(job_variable) != nullptr) return std::nullopt;
  if (!built_with_mpi()) {
    if (ranks <= 1)
      throw UserError(
          fmt::format("--restarts {}: this cortado is built without MPI, by which a job is started again; "
                      "leave it out, or build with -DCORTADO_MPI=mpich",
                      restarts));
    throw UserError(
        fmt::format("--ranks {}: this cortado is built without MPI and runs one rank; build it with "
                    "-DCORTADO_MPI=mpich",
                    ranks));
  }
  JobStart start{.ranks = ranks,
                 .launcher = launcher(normalized),
                 .stall_seconds = number_in(normalized, "--stall-timeout", default_time_limit),
                 .peer_seconds = std::max(1, number_in(normalized, "--peer-timeout", default_time_limit)),
                 .listen = option_value(normalized, "--listen").value_or(""),
                 .restarts = restarts,
                 .min_ranks = number_in(normalized, "--min-ranks", 1),
                 .stop_signals = {SIGTERM}};
  if (hosts_path) take_hosts(start, *hosts_path, hosts_file, normalized);
  if (option_value(normalized, "--sigint-effect").value_or("stop") == "stop")
    start.stop_signals.push_back(SIGINT);
  if (option_value(normalized, "--sighup-effect").value_or("") == "stop")
    start.stop_signals.push_back(SIGHUP);
  start.command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  start.command.insert(start.command.end(), words + 1, words + count);
  tell_ranks_of_terminal();
  return run_job(start);
}

void JobObserver::iteration(const IterationReport& report) {
  if (JobRank* rank = JobMembership::watched_rank()) rank->report_iteration(report.iteration);
}

void JobObserver::snapshot_complete(const std::string& path) {
  const std::optional<SnapshotName> name = parse_snapshot_name(path);
  JobRank* rank = JobMembership::watched_rank();
  if (rank != nullptr && name) rank->report_snapshot(name->iteration, path);
}

}  // namespace cortado
