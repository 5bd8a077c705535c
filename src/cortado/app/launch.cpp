#include "cortado/app/launch.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "cortado/app/arguments.h"
#include "cortado/app/number_option.h"
#include "cortado/app/terminal.h"
#include "cortado/base/error.h"
#include "cortado/comm/mpi.h"
#include "cortado/job/launcher_words.h"
#include "cortado/job/parent.h"

namespace cortado {
namespace {

// The rank that a parent watches, for the observers of this process.
JobRank* watched_rank = nullptr;

// The value of the last --NAME VALUE or --NAME=VALUE.
std::optional<std::string> option_value(const std::vector<std::string>& words, const std::string& name) {
  std::optional<std::string> value;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) value = words[i + 1];
    if (words[i].starts_with(name + "=")) value = words[i].substr(name.size() + 1);
  }
  return value;
}

bool runs_on_ranks(const std::vector<std::string>& words) {
  static const std::vector<std::string> commands = {"train", "test", "time", "verify", "machine", "plan"};
  return !words.empty() && std::ranges::find(commands, words.front()) != commands.end();
}

// In seconds.
int time_limit(const std::vector<std::string>& words, const std::string& option, int otherwise) {
  const std::string text = option_value(words, option).value_or("");
  int seconds = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool good = error == std::errc() && end == text.data() + text.size() && seconds >= 0;
  return good ? std::min(seconds, longest_time_limit) : otherwise;  // the command's parser refuses others
}

// A plan for this machine is made on as many ranks as it is for.
int ranks_asked(const std::vector<std::string>& words) {
  const bool plan = !words.empty() && words.front() == "plan";
  if (plan && option_value(words, "--machine") != "local") return 1;
  std::string text = option_value(words, plan ? "--devices" : "--ranks").value_or("1");
  int ranks = 1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  bool good = error == std::errc() && end == text.data() + text.size();
  return good && ranks <= most_ranks ? ranks : 1;  // the command's parser refuses others
}

std::vector<std::string> launcher(const std::vector<std::string>& words) {
  std::vector<std::string> launcher = split_words(option_value(words, "--launch").value_or(mpi_launcher()));
  if (launcher.empty())
    throw UserError("--launch: give the command that starts ranks, as in \"mpiexec -hosts a,b\"");
  return launcher;
}

// UCX, which carries MPICH's messages, reads these as it is loaded in the ranks: no page of addresses when a
// peer is gone, and a connection at rest is kept until the parent, which says more about it, has ended the
// job.
void set_ucx(int peer_seconds) {
  setenv("UCX_HANDLE_ERRORS", "none", 0);
  setenv("UCX_TCP_KEEPIDLE", fmt::format("{}s", peer_seconds).c_str(), 0);
  setenv("UCX_TCP_KEEPINTVL", fmt::format("{}s", std::max(1, peer_seconds / 4)).c_str(), 0);
  setenv("UCX_TCP_KEEPCNT", "4", 0);
}

}  // namespace

std::optional<int> start_job(int count, const char* const* words) {
  std::vector<std::string> normalized = normalized_arguments(count, words);
  int ranks = ranks_asked(normalized);
  if (ranks <= 1 || !runs_on_ranks(normalized)) return std::nullopt;
  if (launched_rank() || std::getenv(job_variable) != nullptr) return std::nullopt;
  if (!built_with_mpi()) {
    throw UserError(
        fmt::format("--ranks {}: this cortado is built without MPI and runs one rank; build it with "
                    "-DCORTADO_MPI=mpich",
                    ranks));
  }
  JobStart start{.ranks = ranks,
                 .launcher = launcher(normalized),
                 .stall_seconds = time_limit(normalized, "--stall-timeout", default_time_limit),
                 .peer_seconds = std::max(1, time_limit(normalized, "--peer-timeout", default_time_limit))};
  start.command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  start.command.insert(start.command.end(), words + 1, words + count);
  tell_ranks_of_terminal();
  set_ucx(start.peer_seconds);
  return run_job(start);
}

namespace {

// Without a parent each rank prints its own message. What stops one rank often stops all: the others give
// rank 0 the time to print it and to end them. A launcher needs a moment to pass it on before the job ends.
void print_message(const std::string& message) {
  using namespace std::chrono_literals;
  const std::optional<LaunchedRank> launched = launched_rank();
  if (launched && launched->rank > 0) std::this_thread::sleep_for(2s);
  std::fputs(fmt::format("cortado: error: {}\n", message).c_str(),
             stderr);  // fmt::print would throw where it cannot
  std::fflush(stderr);
  if (launched) std::this_thread::sleep_for(500ms);
}

}  // namespace

JobMembership::JobMembership() {
  std::optional<LaunchedRank> launched = launched_rank();
  if (!launched && std::getenv(job_variable) != nullptr) {
    throw UserError(
        fmt::format("{} is set, but no MPI launcher that Cortado knows gave this process a rank; start "
                    "the ranks with mpiexec, mpirun or srun, or unset the variable",
                    job_variable));
  }
  if (launched) rank_ = JobRank::join(launched->rank);
  watched_rank = rank_.get();
}

int JobMembership::leave(int code, const std::string& message) {
  std::fflush(stdout);
  if (!message.empty() && !rank_) print_message(message);
  if (rank_) rank_->goodbye(code, message);
  if (code == 0) return code;
  if (rank_) _exit(code);  // MPI's own ending would wait for the others
  abort_mpi_job(code);
  return code;
}

void JobObserver::iteration(const IterationReport& report) {
  if (watched_rank != nullptr) watched_rank->report_iteration(report.iteration);
}

void JobObserver::snapshot(int64_t, const std::string& path) {
  if (watched_rank != nullptr) watched_rank->report_snapshot(path);
}

std::unique_ptr<Communicator> join_ranks(int ranks_asked) {
  if (!started_by_mpi()) return make_single_communicator();
  const auto stuck = [] {
    fmt::print(stderr, "cortado: error: MPI does not end, {} seconds after the work was done\n",
               seconds_to_end_mpi);
    std::_Exit(static_cast<int>(ExitCode::peer_error));
  };
  std::unique_ptr<Communicator> ranks = make_mpi_communicator(false, stuck);
  if (ranks_asked > 0 && ranks_asked != ranks->size()) {
    throw UserError(fmt::format("--ranks {}: the launcher started {} ranks; give that number or leave it out",
                                ranks_asked, ranks->size()));
  }
  return ranks;
}

}  // namespace cortado
